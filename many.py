import sys,tempfile,traceback
from pathlib import Path
from tests import test_screens as t
from crystalperf.cli.render import debug_text
from crystalperf.query import profile
full='-d' in sys.argv
for a in sys.argv[1:]:
    if a=='-d': continue
    with tempfile.TemporaryDirectory() as d:
        try:
            run=profile([Path(x) for x in a.split('+')],output=Path(d)/'run.duckdb'); v=run.verdict(); s=t.screen(v,'r')
            n=len(s.rstrip().splitlines())
            print(f'######## {a} {n} lines'); print(s if not full else debug_text(run.header(),run.debug()))
        except Exception as e:
            print('########',a,type(e).__name__,e)
