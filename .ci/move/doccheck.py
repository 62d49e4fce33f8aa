import re,glob
for p in sorted(glob.glob('internal/*/*.go')+glob.glob('partition/*.go')+glob.glob('join/*.go')+glob.glob('dataset/*.go')):
    L=open(p).read().split('\n'); ch=False
    for i,l in enumerate(L):
        m=re.match(r'(?:func (?:\([^)]*\) )?|type )(\w+)',l)
        if not m or i==0 or not L[i-1].startswith('//'): continue
        k=i-1
        while k>0 and L[k-1].startswith('//'): k-=1
        w=re.match(r'// (\w+)',L[k])
        if not w: continue
        word,n=w.group(1),m.group(1)
        if word!=n:
            if word.lower()==n.lower(): L[k]='// '+n+L[k][3+len(word):]; ch=True
            elif word not in('A','An','The','Test','If','Of','When','Fuzz') and not p.endswith('_test.go') : print(p[11:],i+1,'|',L[k][:60],'|',n)
    if ch: open(p,'w').write('\n'.join(L))
