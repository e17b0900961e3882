# SPDX-License-Identifier: GPL-2.0
"""Prometheus itself, and node_exporter: an alert fires when a path is cut (Debian: prometheus,
prometheus-node-exporter). Runs only if its name is given: run alarm"""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

from cases.metrics import everything, latency
from cases.monitoring import RULES
from rig import Wrong, equal

ONLY_IF_NAMED = True
PATH = 'ip:192.168.101.2@ip:192.168.101.1'


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Programs:
    """node_exporter that reads the metrics of the host, and Prometheus that scrapes it"""

    def __init__(self, host):
        self.host, self.running = host, []
        self.textfile = host.top / 'textfile'
        self.log = open(host.top / 'log', 'w+', encoding='utf-8')

    def __enter__(self):
        exporter, self.port = free_port(), free_port()
        self.textfile.mkdir()
        # The times of the rules are for people; a second will do here.
        (self.host.top / 'rules.yml').write_text(
            re.sub(r'^( *for:).*', r'\1 1s', RULES.read_text(), flags=re.M))
        (self.host.top / 'prometheus.yml').write_text(json.dumps({
            'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'},
            'rule_files': ['rules.yml'],
            'scrape_configs': [{'job_name': 'node', 'static_configs': [
                {'targets': [f'127.0.0.1:{exporter}']}]}]}))
        self.start('prometheus-node-exporter', '--collector.disable-defaults',
                   '--collector.textfile', f'--collector.textfile.directory={self.textfile}',
                   f'--web.listen-address=127.0.0.1:{exporter}')
        self.start('prometheus', f'--config.file={self.host.top}/prometheus.yml',
                   f'--storage.tsdb.path={self.host.top}/data',
                   f'--web.listen-address=127.0.0.1:{self.port}')
        return self

    def __exit__(self, *_):
        for program in self.running:
            program.terminate()
        for program in self.running:
            program.wait()
        self.log.close()

    def start(self, *command):
        self.running.append(subprocess.Popen(command, stdout=self.log, stderr=self.log))

    def write(self):
        """What the timer does"""
        self.host.run(f'metrics {self.textfile}/rnbd.prom')

    def ask(self, path):
        url = f'http://127.0.0.1:{self.port}/api/v1/{path}'
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)['data']

    def value(self, name):
        """The sum of the series; None if there is none"""
        result = self.ask(f'query?query=sum({name})')['result']
        return float(result[0]['value'][1]) if result else None

    def firing(self):
        return [alert for alert in self.ask('alerts')['alerts'] if alert['state'] == 'firing']

    def wait(self, what, holds):
        for _ in range(600):
            try:
                if holds():
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        self.log.seek(0)
        raise Wrong(f'{what}: not after a minute\n{self.log.read()}')


def test_an_alert_fires_when_a_path_is_cut(host):
    everything(host)
    with Programs(host) as programs:
        programs.write()
        programs.wait('scraped', lambda: programs.value('up') == 1 and
                      programs.value('rnbd_path_up') == 4)
        equal('errors of node_exporter', programs.value('node_textfile_scrape_error'), 0)
        groups = programs.ask('rules')['groups']
        equal('rules', len(groups[0]['rules']), len(re.findall('alert:', RULES.read_text())))
        programs.wait('evaluated', lambda: all(
            rule['health'] == 'ok' for rule in programs.ask('rules')['groups'][0]['rules']))
        equal('alerts at first', programs.firing(), [])

        host.path(net=1, state='disconnected', io_latency=latency(fast=10))
        programs.write()
        programs.wait('an alert', programs.firing)
        alerts = programs.firing()
        equal('alerts', [(a['labels']['alertname'], a['labels']['severity'], a['labels']['path'])
                         for a in alerts], [('RnbdPathDown', 'warning', PATH)])
        equal('summary', PATH in alerts[0]['annotations']['summary'], True)

        host.path(net=1, io_latency=latency(fast=10))
        programs.write()
        programs.wait('the end of the alert', lambda: not programs.firing())


def test_every_alert_has_valid_texts(host):
    """Templates are not tried before an alert fires: all do here, by thresholds turned round."""
    everything(host)
    host.path(net=1, state='disconnected', io_latency=latency(fast=10))
    host.disk(state='closed', server_sectors=4096)
    host.port('rxe0', '1: DOWN')
    shutil.rmtree(host.sys / 'kernel')
    host.attributes('kernel/config/rnbd', listen=0)
    with Programs(host) as programs:
        programs.write()
        programs.wait('alerts', lambda: len({a['labels']['alertname']
                                             for a in programs.firing()}) >= 5)
        for alert in programs.firing():
            texts = json.dumps(alert['annotations'])
            equal(texts, 'error' in texts or '{{' in texts or '<no value>' in texts, False)
