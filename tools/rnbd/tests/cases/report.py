# SPDX-License-Identifier: GPL-2.0
"""report: the page for a ticket. What a browser makes of it is in browser.py"""

import html.parser
import os
import re
import shutil
import stat
import subprocess

from cases.metrics import everything, latency
from rig import CLIENT, SERVER, Wrong, equal

VOID = {'meta'}
CONFIGFS = 'kernel/config/rnbd'


class Page(html.parser.HTMLParser):
    """Elements, text, and attributes of a page; each element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        equal('unclosed', self.open, [])

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise Wrong(f'</{tag}> in {self.open}')

    def handle_data(self, data):
        if data.strip() and self.open[-1] != 'style':
            self.text.append(data)


def page(host):
    return Page(host.run('report -').out)


def has(found, *words):
    text = '\n'.join(found.text)
    for word in words:
        if word not in text:
            raise Wrong(f'the report says nothing of {word!r}:\n{text}')


def rules(host, **more):
    host.attributes(CONFIGFS, listen=1, policy='listed')
    host.attributes(f'{CONFIGFS}/volumes/vol1', path='/dev/vg0/vol1', modes='ro rw', exclusive=1,
                    allow_any_host=0, enable=1)
    host.attributes(f'{CONFIGFS}/hosts/web', **dict(
        dict(sessions='web-*', addresses='ip:10.0.0.0/8', keys='rnbd:web', max_sessions=0,
             max_memory=0, cgroup=''), **more))


def test_report_of_both_ends(host):
    everything(host)
    rules(host)
    host.path(net=1, state='disconnected', io_latency=latency(slow=3))
    host.kmsg.write_text('6,1,1000000,-;usb 1-1: new device\n'
                         '4,2,2000000,-;rtrs_client: s1: lost\n SUBSYSTEM=x\n')
    got = page(host)
    has(got, 'rnbd0', 'vol1', 'session s1', '192.168.100.2', '192.168.101.1', 'rxe1 port 1',
        'disconnected', '12.3us round trip', '3 in flight', 'the path is disconnected', 'WARNING',
        'sda vol1', '/dev/vg0/vol1', 'listed', 'web-*', 'max_memory', 'failover_timeout'.upper().replace('_', ' '),
        '[    2.000000] rtrs_client: s1: lost', 'Server: disks', 'Client: heartbeats', '1M')
    for unwanted in 'usb 1-1', 'SUBSYSTEM':
        equal(unwanted, unwanted in '\n'.join(got.text), False)
    equal('drawings and heat maps', got.tags.count('svg') > 6, True)
    equal('scripts', {'script', 'link', 'img', 'iframe', 'object', 'a'} & set(got.tags), {'a'})
    for name, value in got.attributes:
        if name in ('src', 'href') and not value.startswith('#') or name.startswith('on'):
            raise Wrong(f'it refers to something else: {name}={value}')


def test_report_of_one_end(host):
    host.client()
    host.session()
    host.path()
    host.disk()
    got = page(host)
    has(got, 'rnbd0', 'client: devices open')
    equal('server', 'Open volumes' in got.text, False)
    shutil.rmtree(host.sys)
    host.server()
    host.server_path()
    host.export()
    got = page(host)
    has(got, 'Open volumes', 'server: sessions', "The rules can't be read")
    equal('client', 'Devices' in got.text, False)
    shutil.rmtree(host.sys)
    has(page(host), 'neither module is loaded', 'UNKNOWN')


def test_report_without_paths_and_sessions(host):
    host.client()
    has(page(host), 'No session.')
    host.session()
    host.disk()
    host.disk(1, session='gone')
    has(page(host), 'no path', 'session is gone', 'No request was counted.')


EVIL = '<script>alert("1")</script>&\'%s'


def test_report_escapes_all_text(host):
    host.pair()
    folder = host.path(net=1, state=EVIL)
    host.attributes(folder, src_addr=EVIL, dst_addr=EVIL, hca_name=EVIL)
    host.disk(path=EVIL, state=EVIL, mode=EVIL, session=EVIL)
    host.export(disk='<img src=x onerror=alert(1)>', path=EVIL, mode=EVIL)
    host.attributes(f'{CLIENT}/s1', mp_policy=EVIL)
    rules(host, sessions=EVIL, addresses=EVIL, max_sessions=EVIL)
    host.attributes(f'{CONFIGFS}/volumes/<b>', path=EVIL, modes=EVIL, exclusive=EVIL,
                    allow_any_host=EVIL, enable=EVIL)
    host.attributes('module/rnbd_server/parameters', dev_search_path=EVIL)
    host.attributes('module/rnbd_client', version=EVIL)
    host.port('<b>', EVIL)
    for kind in CLIENT, SERVER:
        os.makedirs(os.fsencode(host.sys / kind) + b'/<b>\xff\x1b[2J"><script>/paths')
    host.kmsg.write_text(f'3,1,1,-;rnbd_client: {EVIL}\n')
    got = page(host)
    equal('elements', {'script', 'img', 'b '} & set(got.tags), set())
    has(got, EVIL, '<img src=x onerror=alert(1)>', '<b>?')
    equal('attributes', [name for name, _ in got.attributes if name.startswith('on')], [])


def test_report_has_no_keys(host):
    secret = 'c2VjcmV0IG9mIHRoZSBob3N0IHdlYiEhISEhISEhISE='
    everything(host)
    rules(host, keys=f'rnbd:web {secret}')
    host.attributes('module/rnbd_server/parameters', hidden=secret, shown='Y')
    (host.sys / 'module/rnbd_server/parameters/hidden').chmod(0o600)
    host.kmsg.write_text(
        f'3,1,1,-;rtrs_core: rnbd:web: no key of type logon is called so: -ENOKEY\n'
        f'3,2,2,-;rtrs_core: hunter2: the key is too short: -EINVAL\n'
        f'3,3,3,-;rnbd_client: map_device: {secret}: unknown option, not key=NAME\n'
        f'3,4,4,-;rnbd_client: map_device: key=hunter2 key=rnbd:web: given twice\n'
        f'4,5,5,-;rtrs_server: web-1/ip:10.0.0.1@ip:10.0.0.2: the key rnbd:web can\'t be used\n')
    host.volumes.write_text('data s1 10.0.0.1 vol1 key=rnbd:web\n')
    text = host.run('report -').out
    for word in secret, 'rnbd:web', 'hunter2':
        equal(word, word in text, False)
    has(Page(text), 'no key of type logon', 'web-1/ip:10.0.0.1@ip:10.0.0.2: the key', 'shown',
        'HAS TO PROVE A KEY')


def test_report_has_the_end_of_the_log(host):
    host.client()
    host.kmsg.write_text(''.join(f'6,{n},{n},-;rnbd_client: line {n}.\n' for n in range(1000)))
    got = page(host)
    has(got, '700 older lines are left out', 'line 700.', 'line 999.')
    equal('old', 'line 699.' in '\n'.join(got.text), False)
    host.kmsg.unlink()
    has(page(host), "log can't be read: No such file")


def test_report_with_two_hundred_devices(host):
    host.client()
    for n in range(20):
        host.session(f's{n}')
        host.path(f's{n}')
    for n in range(200):
        host.disk(n, session=f's{n % 20}', path=f'volume-{n}', state='closed' if n == 77 else 'open')
    got = page(host)
    equal('drawn', sum(text.startswith('rnbd') and text[4:].isdigit() for text in got.text) >= 400,
          True)
    # All sessions have the same peer.
    equal('servers', got.text.count('server'), 1)
    has(got, '199 of 200', 'rnbd77')


def test_report_into_a_file(host):
    everything(host)
    path = host.top / 'page.html'
    equal('says', host.run(f'report {path}').out, f'{path}\n')
    equal('mode', stat.S_IMODE(path.stat().st_mode), 0o600)
    Page(path.read_text())
    host.says('report /dev/full', 'not a regular file', code=1)
    host.says(f'report {host.top}/nowhere/page', 'No such file', code=1)
    name = subprocess.run(host.command('report'), env=host.environment(), cwd=host.top, check=True,
                          capture_output=True, text=True).stdout.strip()
    if not re.fullmatch(r'rnbd-.*-\d{8}-\d{6}\.html', name) or not (host.top / name).exists():
        raise Wrong(f'default name: {name}')
