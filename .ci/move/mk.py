import json
d=json.load(open('partition.json'))
d['pkg']='internal/output'
d['rooms']['source']+=['choose','keepopen','unfinished','marks','reading','filecheck']
d['rooms']['output']+=['outputcheck','door','job']
s=d['symbols']
for k in list(s):
    if k.startswith('Scanner.') or k.startswith('File.') or k.startswith('Output') or k in('MetaResult','MetaFilter','metaRun','metaHive','ResultCandidates','ResultExact','Map','File.Fingerprint'): s.pop(k)
ren={'fingerprint':'source'}
s.update({'File.digest':'source','File.Fingerprint':'source','briefOf':'inputs','schemaDigestOf':'inputs','describedOf':'inputs','publishedOf':'inputs',
 'Scan':'keyscan','Scan.predicates':'keyscan','Scan.SchemaOf':'keyscan','Scan.schemaOf':'keyscan','Scan.columns':'keyscan','Scan.checkSchema':'keyscan','ScannerOf':'keyscan','Scanner.begin':'keyscan','Scanner.readColumns':'keyscan','Scanner.check':'keyscan','Scanner.checks':'keyscan','Scanner.Result':'keyscan','Scanner.PathOf':'keyscan','Scanner.countGroups':'keyscan','Scanner.setCopied':'keyscan','checkScanner':'keyscan','Scanner.newMatchScan':'keyscan',
 'NewScanner':'keyscan','Open':'source','Count':'output','partsOf':'output','eachPart':'output','pages':'output','outRows':'output',
 'Map':'records','Rows':'records','Work':'keyscan','groupsMost':'cond','readGroup':'records','unfinishedGroup':'pagecopy','copyPages':'pagecopy','stemOf':'source','made':'rows','released':'rows','need':'rows','nothing':'keyscan','newScanWorker':'records','rowsNeed':'records','asOut':'output','jobsAhead':'keyscan','scouts':'keyscan','Scanner.copiedAs':'keyscan','Scanner.countOnly':'keyscan','list':'cond','IntegerRange':'keyscan'})
d['rooms']['keyscan'].append('scanner'); d['rooms']['records'].remove('scanner')
json.dump(d,open('p2.json','w'))
