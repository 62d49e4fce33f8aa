#!/usr/bin/env python3
"""merge.py DIR dst src...: append the declarations of Go files to dst."""
import re,sys,os,subprocess
d,dst,srcs=sys.argv[1],sys.argv[2],sys.argv[3:]
def split(p):
    s=open(p).read()
    m=re.search(r'^package \w+\n',s,re.M)
    head=s[:m.end()]; rest=s[m.end():]
    imps=set()
    while True:
        r=rest.lstrip('\n')
        m=re.match(r'import \((.*?)\n\)\n',r,re.S)
        if m:
            for l in m.group(1).split('\n'):
                if l.strip(): imps.add(l.strip())
            rest=r[m.end():]; continue
        m=re.match(r'import ("[^"]+"|\w+ "[^"]+")\n',r)
        if m: imps.add(m.group(1)); rest=r[m.end():]; continue
        rest=r; break
    return head,imps,rest
h,i,b=split(f'{d}/{dst}')
for s in srcs:
    hh,ii,bb=split(f'{d}/{s}')
    i|=ii; b=b.rstrip('\n')+'\n\n'+bb
    extra=hh[:hh.rindex('package ')].strip()
    if extra: print('HEAD LOST',s,extra[:80])
    os.remove(f'{d}/{s}')
def path(x): return re.search(r'"([^"]+)"',x).group(1)
std=sorted([x for x in i if '.' not in path(x).split('/')[0]],key=path)
ext=sorted([x for x in i if '.' in path(x).split('/')[0] and 'bloomjoin/bloomjoin' not in x],key=path)
own=sorted([x for x in i if 'bloomjoin/bloomjoin' in x],key=path)
txt=h+'\n'
if i: txt+='import (\n'+'\n\n'.join('\n'.join('\t'+x for x in g) for g in (std,ext,own) if g)+'\n)\n\n'
open(f'{d}/{dst}','w').write(txt+b)
subprocess.run(['gofmt','-w',f'{d}/{dst}'])
