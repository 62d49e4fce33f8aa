import re,glob,sys,os
# other modules: output.X -> room.X by where X is declared now
R='internal/'
rooms=['source','inputs','tasks','rowfilter','keyscan','leaves','tables','arraycopy','pagecopy','output']
where={}
for r in rooms:
    for p in glob.glob(R+r+'/*.go'):
        if p.endswith('_test.go'): continue
        s=open(p).read()
        for m in re.finditer(r'^(?:func|type|var|const) ([A-Z]\w*)',s,re.M): where.setdefault(m.group(1),[]).append(r)
        for blk in re.finditer(r'^(?:var|const) \((.*?)^\)',s,re.M|re.S):
            for m in re.finditer(r'^\t([A-Z]\w*)',blk.group(1),re.M): where.setdefault(m.group(1),[]).append(r)
for p in glob.glob('interop/attack/*.go'):
    s=open(p).read(); used=set(); base='/bloomjoin/bloomjoin/internal/'
    def f(m):
        q=where.get(m.group(2)); 
        if not q: print('??',p,m.group(0)); return m.group(0)
        r=m.group(1) if m.group(1) in q else q[-1]
        used.add(r); return r+'.'+m.group(2)
    t=re.sub(r'\b(%s)\.([A-Z]\w*)'%'|'.join(rooms),f,s)
    if used:
        t=re.sub(r'\t"github.com/bloomjoin/bloomjoin/internal/(%s)"\n'%'|'.join(rooms),'',t)
        imp=''.join('\t"github.com/bloomjoin/bloomjoin/internal/%s"\n'%r for r in sorted(used))
        t=t.replace('\t"github.com/bloomjoin/bloomjoin/',imp+'\t"github.com/bloomjoin/bloomjoin/',1)
    if t!=s: open(p,'w').write(t)
os.system('gofmt -w interop/attack/*.go')
