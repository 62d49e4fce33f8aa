import json,sys
room,target=sys.argv[1],sys.argv[2]
tests=sys.argv[3].split(',') if len(sys.argv)>3 and sys.argv[3] else []
extra=json.load(open(sys.argv[4])) if len(sys.argv)>4 else {}
p=json.load(open('ROOMS/p2.json'))
P='internal/output'
files={f+'.go':target for f in p['rooms'][room]}
for t in tests: files[t+'.go']=target
sym={}
for k,v in p['symbols'].items():
    sym[P+'.'+k]= target if v==room else P
d={"Files":{P:files},"Symbols":sym,"KeepComments":"^$"}
d.update(extra)
json.dump(d,open('TMP/m_room.json','w'),indent=1)
