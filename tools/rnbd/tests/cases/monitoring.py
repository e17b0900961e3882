# SPDX-License-Identifier: GPL-2.0
"""The alert rules and the dashboard, with metrics of the tool, tried by Prometheus' promtool"""

import json
import re
import shutil
import subprocess

from cases.metrics import MEMORY, everything, latency, promtool, series
from rig import EXPORTS, HERE, SERVER, equal

MONITORING = HERE.parent.parent / 'monitoring'
RULES = MONITORING / 'rnbd.rules.yml'

def recorded(host, change):
    """Series for promtool: ten minutes as it is, then an hour after the change."""
    before = series(host)
    change(host)
    after = series(host)
    rows = []
    for key in {**before, **after}:
        name, _, labels = key.rstrip('}').partition('{')
        labels = 'instance="m:9100"' + (',' + labels if labels else '')
        values = []
        (old, kind), (new, _) = before.get(key, (None, 'gauge')), after.get(key, (None, ''))
        values.append('_x20' if old is None else f'{old}x19')
        if new is None:
            values.append('_x120')
        elif kind == 'gauge' or old is None:
            values.append(f'{new}x119')
        else:
            values.append(f'{old}+{(new - old) / 120}x119')
        rows.append({'series': f'{name}{{{labels}}}', 'values': ' '.join(values)})
    return rows


def path_cut(host):
    host.path(net=1, state='disconnected', io_latency=latency(fast=10))
    shutil.rmtree(host.sys / SERVER / 's1/paths/ip:192.168.101.1@ip:192.168.101.2')


def server_gone(host):
    for net in 0, 1:
        host.path(net=net, state='disconnected', io_latency=latency(fast=10))
    host.disk(state='closed', server_sectors=2097152)
    shutil.rmtree(host.sys / SERVER / 's1')
    shutil.rmtree(host.sys / EXPORTS / 'sda')


def one_path_slow(host):
    host.path(net=0, io_latency=latency(fast=10000))
    host.path(net=1, io_latency=latency(fast=10000, slow=9))


def ports_gone(host):
    shutil.rmtree(host.sys / 'class/infiniband')


# What happens, and which alerts fire, how often
SCENES = [
    ('nothing', lambda host: None, {}),
    ('a path is cut', path_cut,
     {('RnbdPathDown', 'warning'): 1}),
    ('the server is gone', server_gone,
     {('RnbdPathDown', 'warning'): 2, ('RnbdSessionDown', 'critical'): 1,
      ('RnbdDeviceClosed', 'critical'): 1}),
    ('a path comes and goes', lambda host: host.path(reconnects='40 3', io_latency=latency(fast=10)),
     {('RnbdPathFlapping', 'warning'): 1}),
    ('a path is slow', one_path_slow, {('RnbdPathSlow', 'warning'): 1}),
    ('a volume is smaller', lambda host: host.disk(server_sectors=4096),
     {('RnbdVolumeShrunk', 'warning'): 1}),
    ('the server is stopped', lambda host: host.attributes('kernel/config/rnbd', listen=0),
     {('RnbdServerNotListening', 'warning'): 1}),
    ('memory is full', lambda host: host.attributes(MEMORY, memory_used=1000 << 20),
     {('RnbdServerMemoryFull', 'warning'): 1}),
    ('requests wait for memory', lambda host: host.attributes(MEMORY, memory_waits=10007),
     {('RnbdServerMemoryWaits', 'warning'): 1}),
    ('a disk is slow', lambda host: host.attributes(
        f'{EXPORTS}/sda/stats', disk_latency=latency(fast=1000, slow=100)),
     {('RnbdServerDiskSlow', 'warning'): 1}),
    ('the queue is slow', lambda host: host.attributes(
        f'{EXPORTS}/sda/stats', wait_latency=latency(fast=1000, slow=100)),
     {('RnbdServerQueueSlow', 'warning'): 1}),
    ('a port is down', lambda host: host.port('rxe0', '1: DOWN'),
     {('RnbdProblem', 'warning'): 2}),
    ('RDMA devices are gone', ports_gone,
     {('RnbdProblem', 'warning'): 4, ('RnbdProblem', 'critical'): 1}),
    ('modules are unloaded', lambda host: shutil.rmtree(host.sys / 'class'),
     {('RnbdProblem', 'warning'): 1}),
]

FIRING = 'count by (alertname, severity) (ALERTS{alertstate="firing"})'
TIMER_STOPPED = {
    'interval': '30s', 'name': 'the timer has stopped',
    'input_series': [{'series': 'node_textfile_mtime_seconds{instance="m:9100",'
                                'file="/var/lib/prometheus/node-exporter/rnbd.prom"}',
                      'values': '0x60'}],
    'promql_expr_test': [{'expr': FIRING, 'eval_time': f'{minutes}m', 'exp_samples': want}
                         for minutes, want in ((4, []), (8, [
                             {'labels': '{alertname="RnbdMetricsStale",severity="warning"}',
                              'value': 1}]))]}


def scene(host, name, change, want):
    shutil.rmtree(host.sys)
    everything(host)
    samples = [{'labels': f'{{alertname="{alert}",severity="{severity}"}}', 'value': n}
               for (alert, severity), n in want.items()]
    # The server has forgotten half an hour later that there were more paths.
    lost = [{'labels': '{alertname="RnbdServerLostPath",severity="warning"}', 'value': 1}]
    return {'interval': '30s', 'name': name, 'input_series': recorded(host, change),
            'promql_expr_test': [
                {'expr': FIRING, 'eval_time': '9m30s', 'exp_samples': []},
                {'expr': FIRING, 'eval_time': '25m',
                 'exp_samples': samples + (lost if change is path_cut else [])},
                {'expr': FIRING, 'eval_time': '65m', 'exp_samples': samples}]}


def test_alerts_fire(host):
    tests = [scene(host, *words) for words in SCENES]
    # JSON is YAML.
    (host.top / 'rules.yml').write_text(RULES.read_text())
    (host.top / 'tests.yml').write_text(json.dumps(
        {'rule_files': ['rules.yml'], 'evaluation_interval': '30s',
         'tests': [*tests, TIMER_STOPPED]}))
    promtool('test', 'rules', host.top / 'tests.yml')
    tried = {alert for _, _, want in SCENES for alert, _ in want}
    equal('alerts', sorted(re.findall(r'alert: (\w+)', RULES.read_text())),
          sorted(tried | {'RnbdServerLostPath', 'RnbdMetricsStale'}))


def test_alerts_are_in_the_manual(_):
    manual = (MONITORING.parent.parent / 'Documentation/monitoring.rst').read_text()
    for alert in re.findall(r'alert: (\w+)', RULES.read_text()):
        equal(f'{alert} is described', f'``{alert}``' in manual, True)


# ---- the dashboard ----

def panels():
    return [p for p in json.loads((MONITORING / 'rnbd-dashboard.json').read_text())['panels']
            if p['type'] != 'row']


def test_dashboard_asks_for_metrics_that_exist(host):
    everything(host)
    host.path(net=1, state='disconnected', io_latency=latency())
    known = {re.match(r'\w+', key)[0] for key in series(host)}
    used = set(re.findall(r'rnbd_\w+', json.dumps([p['targets'] for p in panels()])))
    equal('unknown', sorted(used - known), [])
    used |= set(re.findall(r'\brnbd_[a-z_]+', RULES.read_text()))
    equal('unknown to the rules', sorted(used - known), [])


def test_dashboard_has_valid_queries(host):
    queries = [target['expr'] for panel in panels() for target in panel['targets']]
    for name, value in ('$__rate_interval', '5m'), ('$instance', '.*'), ('$session', '.*'):
        queries = [query.replace(name, value) for query in queries]
    (host.top / 'queries.yml').write_text(json.dumps({'groups': [{
        'name': 'dashboard',
        'rules': [{'record': f'query:{n}', 'expr': query} for n, query in enumerate(queries)]}]}))
    promtool('check', 'rules', host.top / 'queries.yml')


def test_dashboard_is_laid_out(_):
    taken = set()
    for panel in json.loads((MONITORING / 'rnbd-dashboard.json').read_text())['panels']:
        at = panel['gridPos']
        cells = {(x, y) for x in range(at['x'], at['x'] + at['w'])
                 for y in range(at['y'], at['y'] + at['h'])}
        equal(f'{panel["title"]} covers', sorted(cells & taken), [])
        equal(f'{panel["title"]} fits', max(x for x, _ in cells) < 24, True)
        taken |= cells


def test_install_for_monitoring(host):
    subprocess.run(['make', '-s', '-C', MONITORING, f'DESTDIR={host.top}/root', 'prefix=/usr',
                    'install'], check=True)
    equal('installed', sorted(p.name for p in (host.top / 'root/usr/share/rnbd').iterdir()),
          ['rnbd-dashboard.json', 'rnbd.rules.yml'])
