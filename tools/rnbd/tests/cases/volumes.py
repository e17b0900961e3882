# SPDX-License-Identifier: GPL-2.0
"""The table of volumes: what is read, what is wrong with it, what is mapped; the generator"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from rig import CLIENT, CTL, Wrong, equal
import schema

MAP = CTL + '/map_device'


def line(host, name):
    """What is written to map_device for a volume"""
    done = host.run(['-n', 'volume', 'map', name])
    return done.err.split("'")[1]


def test_volume_lines(host):
    host.client()
    host.volumes.write_text('''
# a comment, and an empty line

data storage1 10.0.0.1 vol1
 \tblanks \t s2  10.0.0.2@10.0.0.1,ip:10.0.1.1   /dev/sda \t noauto,access_mode=ro
six s3 fd00::1 vol1 mp_policy=rr,failover_timeout=-1,hb_interval_ms=1000,hb_max_missed=3
gid s4 gid:fe80::1 vol1 dest_port=1235,queue_depth=32,nr_queues=4,nr_poll_queues=-1,nofail,_netdev,defaults
link s8 fe80::2%eth1@fe80::1%eth1,ip:fe80::1%7 vol1
octal s\\0655 10.0.0.1 a\\054b,\\075\\ -
hash s6 10.0.0.1 a#b
last s7 10.0.0.1 z reconnect_delay_ms=5,reconnect_delay_max_ms=6,max_reconnect_attempts=-1,\
unfenced_delay_ms=0''')
    for name, want in [
            ('data', 'sessname=storage1 device_path=vol1 path=ip:10.0.0.1'),
            ('blanks', 'sessname=s2 device_path=/dev/sda access_mode=ro '
             'path=ip:10.0.0.2,ip:10.0.0.1 path=ip:10.0.1.1'),
            ('six', 'sessname=s3 device_path=vol1 path=ip:fd00::1 mp_policy=round-robin '
             'hb_interval_ms=1000 hb_max_missed=3 failover_timeout=-1'),
            ('gid', 'sessname=s4 device_path=vol1 path=gid:fe80::1 '
             'dest_port=1235 nr_queues=4 nr_poll_queues=-1 queue_depth=32'),
            ('link', 'sessname=s8 device_path=vol1 path=ip:fe80::2%eth1,ip:fe80::1%eth1 '
             'path=ip:fe80::1%7'),
            ('octal', 'sessname=s55 device_path=a,b,=\\ path=ip:10.0.0.1'),
            ('hash', 'sessname=s6 device_path=a#b path=ip:10.0.0.1'),
            ('last', 'sessname=s7 device_path=z path=ip:10.0.0.1 max_reconnect_attempts=-1 '
             'reconnect_delay_ms=5 reconnect_delay_max_ms=6 unfenced_delay_ms=0')]:
        equal(name, line(host, name), want)
    host.says('volume check', '8 volumes')


def test_volumes_of_one_session(host):
    """What is the session's may stand in any of its lines."""
    host.client()
    host.volumes.write_text('a s1 - vol1 hb_interval_ms=1000,access_mode=ro\n'
                            'b s1 10.0.0.1,10.0.1.1 vol2 hb_max_missed=3\n'
                            'c s1 10.0.0.1,10.0.1.1 vol3 hb_max_missed=3\n')
    common = 'path=ip:10.0.0.1 path=ip:10.0.1.1 hb_interval_ms=1000 hb_max_missed=3'
    equal('a', line(host, 'a'), f'sessname=s1 device_path=vol1 access_mode=ro {common}')
    equal('b', line(host, 'b'), f'sessname=s1 device_path=vol2 {common}')


def test_session_without_a_name(host):
    """Its name is made as by rnbd map."""
    host.client()
    host.name('client1.example.org')
    host.volumes.write_text('a - 10.0.0.2@10.0.0.1,10.0.1.1 vol1 hb_max_missed=3\n'
                            'b - 10.0.0.2@10.0.0.1,10.0.1.1 vol2\nc \\055 10.0.0.1 vol4\n'
                            'd client1-example-org_10-0-0-1 - vol3\n')
    common = 'path=ip:10.0.0.2,ip:10.0.0.1 path=ip:10.0.1.1 hb_max_missed=3'
    for name, device in ('a', 'vol1'), ('b', 'vol2'), ('d', 'vol3'):
        equal(name, line(host, name),
              f'sessname=client1-example-org_10-0-0-1 device_path={device} {common}')
    host.says('volume check', 'volumes:3: path=ip:10.0.0.1: line 1 has', code=1)
    equal('listed', host.run('volume list json').json()['volumes'][0]['session'],
          'client1-example-org_10-0-0-1')
    host.name('localhost')
    host.says('volume check', 'a: this machine has no name for the session', code=1)


def test_name_for_udev(host):
    """Of each disk that has a line, whoever mapped it; others have none, and nothing is said."""
    host.client()
    host.disk(n=0, session='s1', path='vol1')
    host.disk(n=1, session='s2', path='vol1')
    host.disk(n=2, session='s1', path='vol2')
    host.volumes.write_text('data s2 10.0.0.1 vol1 noauto\nwrong\nmore s1 10.0.0.1 vol2\n')
    for disk, name in ('rnbd1', 'data'), ('rnbd2', 'more'):
        equal(disk, host.run(f'volume name {disk}').out, f'{name}\n')
    for disk in 'rnbd0', 'rnbd9', '/dev/rnbd1':
        done = host.run(f'volume name {disk}', code=3)
        equal(disk, done.out + done.err, '')
    host.volumes.unlink()
    host.run('volume name rnbd1', code=3)


def test_udev_is_told_of_a_change_of_the_table(host):
    """By an event of the disk and of its partitions, which have links as well"""
    host.client()
    disk = host.disk()
    for folder in disk, f'{disk}/rnbd0p1', f'{disk}/queue', host.disk(n=1, path='vol2'):
        host.attributes(folder, uevent='')

    def told():
        events = [host.written(f'{folder}/uevent') for folder in (disk, f'{disk}/rnbd0p1')]
        equal('others', host.written(f'{disk}/queue/uevent') + host.written('block/rnbd1/uevent'), '')
        for folder in disk, f'{disk}/rnbd0p1':
            host.attributes(folder, uevent='')
        return events

    host.run('map vol1 from s1 10.0.0.1')
    equal('without a line', told(), ['', ''])
    host.run('map vol1 from s1 10.0.0.1 --save=data')
    equal('saved', told(), ['change', 'change'])
    host.run('volume map data')
    equal('mapped before', told(), ['change', 'change'])
    host.run('-n volume map data')
    equal('dry run', told(), ['', ''])


WRONG = [
    ('x', '1 columns; it takes NAME SESSION PATHS VOLUME'),
    ('x s2 10.0.0.1', '3 columns'),
    ('x s2 10.0.0.1 vol noauto nofail', '6 columns, at most 5'),
    ('x/y s2 10.0.0.1 vol', 'x/y: names are of letters'),
    ('ä s2 10.0.0.1 vol', 'names are of letters'),
    ('-x s2 10.0.0.1 vol', "can't be called so"),
    ('all s2 10.0.0.1 vol', "can't be called so"),
    ('x' * 51 + ' s2 10.0.0.1 vol', 'more than 50'),
    ('x a/b 10.0.0.1 vol', 'session a/b'),
    ('x a.b 10.0.0.1 vol', 'session a.b'),
    ('x a\\040b 10.0.0.1 vol', 'session a b'),
    ('x ' + 's' * 255 + ' 10.0.0.1 vol', 'session sss'),
    ('x s2 10.0.0.1 a\\040b', 'volume a b'),
    ('x s2 10.0.0.1 ' + 'd' * 253, 'more than 254 characters together'),
    ('x s2 10.0.0 vol', "'10.0.0' is no path"),
    ('x s2 10.0.0.1, vol', "'' is no path"),
    ('x s2 host vol', "'host' is no path"),
    ('x s2 - vol', 'no line has paths for session s2'),
    ('x - - vol', 'x: a session without a name needs paths'),
    ('x - 10.0.0 vol', "'10.0.0' is no path"),
    ('. s2 10.0.0.1 vol', "can't be called so"),
    ('.. s2 10.0.0.1 vol', "can't be called so"),
    ('x s2 10.0.0.1 vol ro', "no option 'ro'"),
    ('x s2 10.0.0.1 vol noauto,,nofail', "no option ''"),
    ('x s2 10.0.0.1 vol path=10.0.0.1', "paths are given without path="),
    ('x s2 10.0.0.1 vol hb=1', "no option 'hb=1'"),
    ('x s2 10.0.0.1 vol hb_max_missed', 'hb_max_missed takes a value'),
    ('x s2 10.0.0.1 vol access_mode=wo', 'access_mode=wo: it is one of ro rw migration handover'),
    ('x s2 10.0.0.1 vol mp_policy=r', 'mp_policy=r: it is one of round-robin'),
    ('x s2 10.0.0.1 vol mp_policy=', 'mp_policy=: it is one of'),
    ('x s2 10.0.0.1 vol dest_port=0', 'dest_port=0: not a number from 1 to 65535'),
    ('x s2 10.0.0.1 vol failover_timeout=1s', 'not a number from -1 to 1000000'),
    ('x s2 10.0.0.1 vol hb_interval_ms=9', 'not a number from 10 to'),
    ('x s2 10.0.0.1 vol hb_max_missed=1,hb_max_missed=1', 'hb_max_missed is given twice'),
    ('good s2 10.0.0.1 vol', 'good: line 1 has that name'),
    ('x s1 10.0.0.1 vol1', 'line 1 has volume vol1 of session s1'),
    ('x s1 10.0.0.2 vol2', 'path=ip:10.0.0.2: line 1 has ip:10.0.0.1 for session s1'),
    ('x s1 10.0.0.1 vol2 failover_timeout=5', 'failover_timeout=5: line 1 has 30 for session s1'),
    ('x\0 s2 10.0.0.1 vol', 'a NUL'),
    ('x s2 10.0.0.1 \x1b[2J', 'volume ?[2J'),
]


def test_wrong_lines(host):
    """The others hold all the same."""
    host.client()
    host.name('client1')
    for text, why in WRONG:
        host.volumes.write_text(f'good s1 10.0.0.1 vol1 failover_timeout=30\n# \n{text}\n'
                                'after s9 10.0.0.1 vol1\n')
        done = host.says('volume check', f'{host.volumes}:3: ', why, code=1)
        equal(f'lines about {text}', len(done.err.splitlines()), 1)
        names = [v['name'] for v in host.run('volume list json').json()['volumes']]
        equal(f'left of {text}', names, ['good', 'after'])
    host.volumes.write_text('good s1 10.0.0.1 vol1\nbad s1\n')
    equal('said of others', host.run('-n volume map good').err.count('volumes:'), 0)
    host.says('-n volume map bad', 'volumes:2: 2 columns', "volume called 'bad'", code=3)


def test_no_table(host):
    host.client()
    host.says('volume check', 'No such file', code=3)
    equal('list', host.run('volume list json').json(), {'volumes': []})
    host.says('volume map x', "volume called 'x'", code=3)
    host.run('volume map all')
    host.volumes.mkdir()
    host.says('volume map x', 'volumes: Is a directory', code=1)
    other = host.top / 'other'
    other.write_text('a s1 10.0.0.1 vol1\n')
    host.says(f'volume check {other}', '1 volumes')


def test_volume_list(host):
    host.client()
    host.session()
    host.disk(state='closed')
    host.volumes.write_text('data s1 10.0.0.1,10.0.1.1 vol1 nofail,hb_max_missed=3\n'
                            'more s1 - vol2 noauto\n')
    equal('list', [x.split() for x in host.run('volume list').out.splitlines()],
          [['NAME', 'SESSION', 'VOLUME', 'DEVICE', 'STATE'],
           ['data', 's1', 'vol1', f'{host.dev}/rnbd0', 'closed'],
           ['more', 's1', 'vol2', '-', '-']])
    document = host.run('volume list json').json()
    schema.check('volumes', document)
    equal('paths', document['volumes'][1]['paths'], ['ip:10.0.0.1', 'ip:10.0.1.1'])
    equal('option', document['volumes'][1]['options']['hb_max_missed'], '3')


def test_volume_map(host):
    host.client()
    host.session()
    host.volumes.write_text('data s1 10.0.0.1 vol1\nlater s1 - vol2 noauto\n')
    host.says('volume map data', "no device is called 'vol1'", code=3)
    equal('written', host.written(MAP), 'sessname=s1 device_path=vol1 path=ip:10.0.0.1')
    host.attributes(CTL, map_device='')
    host.disk()
    host.says('volume map data', f'{host.dev}/rnbd0')
    host.says('volume map all', f'{host.dev}/rnbd0')
    equal('written to a mapped one', host.written(MAP), '')
    host.refuse(MAP, 'ENOENT', 'rnbd_client: s1: absent')
    host.says('volume map later', "can't map volume later", 'ENOENT', 'absent', code=1)


def test_volume_unmap(host):
    host.client()
    host.session()
    host.volumes.write_text('data s1 10.0.0.1 vol1\nmore s1 10.0.0.1 vol2\n')
    unmap = host.disk() + '/rnbd/unmap_device'
    host.run('volume unmap data')
    equal('written', host.written(unmap), 'normal')
    host.run('volume unmap data force')
    equal('written', host.written(unmap), 'force')
    host.attributes('block/rnbd0/rnbd', unmap_device='')
    host.run('volume unmap all')
    equal('written', host.written(unmap), 'normal')
    host.says('volume unmap more', 'not mapped', code=3)
    host.run('volume unmap more --wait')
    host.says('volume unmap data now', 'volume unmap NAME', code=2)
    host.refuse(unmap, 'EBUSY')
    host.says('volume unmap data', 'unmount it first', code=1)


def wait_for(what, done, seconds=30):
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise Wrong(f'no {what}')
        time.sleep(0.02)


class Waiting:
    """volume map --wait, as systemd starts it"""

    def __init__(self, host, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(host.top / 'notify'))
        self.socket.settimeout(30)
        self.err = open(host.top / 'err', 'w+')
        self.process = subprocess.Popen(
            host.command(f'volume map --wait {name}'), stderr=self.err, stdout=subprocess.DEVNULL,
            env={**host.environment(), 'NOTIFY_SOCKET': str(host.top / 'notify')})

    def until(self, want):
        """It tells systemd that, after whatever else. On a slow machine more may come before."""
        said = []
        while want not in said:
            try:
                said.append(self.socket.recv(4096).decode())
            except TimeoutError:
                raise Wrong(f'{want!r} never comes: {said}') from None

    def ends(self):
        code = self.process.wait(60)
        self.socket.close()
        self.err.seek(0)
        return code, self.err.read()


def test_volume_map_waits(host):
    """Tries again until the server is there, later each time; what is wrong is said once."""
    host.client()
    host.session()
    host.disk()
    host.attributes('block/rnbd0/rnbd', mapping_path='other')
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    host.refuse(MAP, 'EHOSTUNREACH', 'rnbd_client: s1: no route')
    host.program('systemctl', f'echo "$@" >>{host.top}/systemctl.log\n')
    start = time.monotonic()
    waiting = Waiting(host, 'data')
    for _ in range(4):
        waiting.until('STATUS=trying s1 again: No route to host')
    # After 1, 2 and 4 seconds, each a quarter shorter at most
    equal('delays grow', time.monotonic() - start > 5, True)
    (host.sys / (MAP + '.refuse')).unlink()
    # It is there when the write to map_device returns.
    host.attributes('block/rnbd0/rnbd', mapping_path='vol1')
    waiting.until('STATUS=mapped')
    code, err = waiting.ends()
    equal('code', code, 0)
    equal('said', err.count('EHOSTUNREACH'), 1)
    equal('mounts', (host.top / 'systemctl.log').read_text(),
          '--no-block start remote-fs.target\n')


def test_volume_map_at_once(host):
    """What waits for the disk is left alone, and what somebody has unmounted stays so."""
    host.client()
    host.session()
    host.disk()
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    host.program('systemctl', f'echo "$@" >>{host.top}/systemctl.log\n')
    waiting = Waiting(host, 'data')
    waiting.until('STATUS=mapped')
    equal('code', waiting.ends()[0], 0)
    equal('mounts', (host.top / 'systemctl.log').exists(), False)


def test_volume_map_hangs(host):
    """The unit has started all the same; mounts may have given up when it is mapped."""
    host.client()
    host.session()
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    host.program('systemctl', f'echo "$@" >>{host.top}/systemctl.log\n')
    (host.sys / MAP).unlink()
    os.mkfifo(host.sys / MAP)
    waiting = Waiting(host, 'data')
    waiting.until('READY=1')
    host.disk()
    with open(host.sys / MAP) as written:
        waiting.until('STATUS=mapped')
        equal('written', written.readline(), 'sessname=s1 device_path=vol1 path=ip:10.0.0.1\n')
    equal('code', waiting.ends()[0], 0)
    equal('mounts', (host.top / 'systemctl.log').read_text(),
          '--no-block start remote-fs.target\n')


def test_volume_map_waits_whatever_the_error(host):
    """No errno that a forged refusal can have ends it; a signal does."""
    host.client()
    host.session()
    host.disk()
    host.attributes('block/rnbd0/rnbd', mapping_path='other')
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    host.program('systemctl', 'exit 0\n')
    host.refuse(MAP, 'EINVAL')
    waiting = Waiting(host, 'data')
    for error, text in [('EINVAL', 'Invalid argument'), ('ENAMETOOLONG', 'File name too long'),
                        ('EACCES', 'Permission denied'), ('EPERM', 'Operation not permitted')]:
        host.refuse(MAP, error)
        waiting.until(f'STATUS=trying s1 again: {text}')
    (host.sys / (MAP + '.refuse')).unlink()
    host.attributes('block/rnbd0/rnbd', mapping_path='vol1')
    waiting.until('STATUS=mapped')
    code, err = waiting.ends()
    equal('code', code, 0)
    equal('said', err.count('EINVAL'), 1)
    host.attributes('block/rnbd0/rnbd', mapping_path='other')
    host.refuse(MAP, 'ENOENT')
    (host.top / 'notify').unlink()
    waiting = Waiting(host, 'data')
    waiting.until('READY=1')
    waiting.process.send_signal(signal.SIGTERM)
    equal('code', waiting.ends()[0], -signal.SIGTERM)


def test_volume_unmap_waits(host):
    """A disk that is in use is waited for; only a shutdown removes it all the same, and stops
    md arrays before."""
    host.client()
    host.session()
    unmap = host.disk() + '/rnbd/unmap_device'
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    host.refuse(unmap, 'EBUSY')
    process = subprocess.Popen(host.command('volume unmap --wait data'), env=host.environment())
    (host.sys / (unmap + '.refuse')).unlink()
    equal('code', process.wait(60), 0)
    equal('written', host.written(unmap), 'normal')
    host.refuse(unmap, 'EBUSY')
    host.program('systemctl', 'echo running\n')
    done = host.says('volume unmap --wait data', 'unmount it first', code=1)
    equal('forced', 'removed' in done.err, False)
    (host.sys / 'block/rnbd0/holders/md0').mkdir(parents=True)
    (host.sys / 'block/rnbd0/rnbd0p1/holders/md1').mkdir(parents=True)
    (host.sys / 'block/rnbd0/holders/dm-0').mkdir()
    host.attributes('block/md0/md', array_state='clean')
    host.attributes('block/md1/md', array_state='clean')
    equal('md0', host.written('block/md0/md/array_state'), 'clean')
    host.program('systemctl', 'echo stopping\n')
    host.says('volume unmap --wait data', 'removed all the same', code=1)
    for md in 'md0', 'md1':
        equal(md, host.written(f'block/{md}/md/array_state').split(), ['clear'])


def test_arrays_are_stopped_when_they_can_be(host):
    """A file system on one may still be mounted when the shutdown comes to the volume."""
    host.client()
    host.session()
    unmap = host.disk() + '/rnbd/unmap_device'
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    (host.sys / 'block/rnbd0/holders/md0').mkdir(parents=True)
    host.attributes('block/md0/md', array_state='clean')
    host.refuse(unmap, 'EBUSY')
    host.refuse('block/md0/md/array_state', 'EBUSY', 'md0 is mounted')
    host.program('systemctl', 'echo stopping\n')
    process = subprocess.Popen(host.command('volume unmap --wait data'), env=host.environment(),
                               stderr=subprocess.PIPE, text=True)
    wait_for('try to stop it', lambda: 'mounted' in host.kmsg.read_text())
    (host.sys / 'block/md0/md/array_state.refuse').unlink()
    wait_for('second try', lambda: host.written('block/md0/md/array_state') == 'clear')
    (host.sys / (unmap + '.refuse')).unlink()
    equal('said', process.communicate(timeout=60)[1], '')
    equal('written', host.written(unmap), 'normal')


def test_shutdown_while_booting(host):
    """Only its job tells then that it is one; other jobs of its target don't."""
    host.client()
    host.session()
    unmap = host.disk() + '/rnbd/unmap_device'
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    host.refuse(unmap, 'EBUSY')
    for job, said in [('42 shutdown.target start waiting', 'removed all the same'),
                      ('42 shutdown.target stop  waiting', 'unmount it first')]:
        host.program('systemctl', f"""case "$*" in
            is-system-running) echo starting; exit 1;;
            *list-jobs*shutdown.target) echo '{job}';;
            esac\n""")
        host.says('volume unmap --wait data', said, code=1)


def test_session_hurry(host):
    host.client()
    for name, timeout, want in [('a', -1, '10'), ('b', 300, '10'), ('c', 0, '0'), ('d', 10, '10')]:
        host.session(name, failover_timeout=timeout)
        host.run('session hurry')
        equal(name, host.written(f'{CLIENT}/{name}/failover_timeout'), want)
        equal('heartbeats', host.written(f'{CLIENT}/{name}/hb_interval_ms'), '1000')
    for name, missed, want in [('e', 1000, '5'), ('f', 5, '5'), ('g', 1, '1')]:
        host.session(name, hb_max_missed=missed)
        host.run('session hurry')
        equal(name, host.written(f'{CLIENT}/{name}/hb_max_missed').split()[0], want)


def generate(host, out):
    out.mkdir()
    generator = host.top / 'rnbd-generator'
    if not generator.exists():
        generator.symlink_to(host.build.tool)
    subprocess.run([generator, out, out / 'early', out / 'late'], env=host.environment(),
                   check=True)
    return sorted(os.path.relpath(os.path.join(folder, name), out)
                  for folder, _, names in os.walk(out) for name in names)


def test_generator(host):
    """A unit for each volume that is mapped at boot; wrong lines are told to the kernel's log."""
    equal('no table', generate(host, host.top / 'none'), [])
    host.volumes.write_text('data s1 10.0.0.1 vol1\nbad s1\nlater s1 - vol2 noauto\n'
                            'a-b.c@d s1 - vol3\n')
    host.kmsg.write_text('')
    found = generate(host, host.top / 'units')
    equal('units', found, ['multi-user.target.wants/rnbd-volume@' + name + '.service'
                           for name in ('a-b.c@d', 'data')])
    equal('link', os.readlink(host.top / 'units' / found[0]),
          f'{host.build.work.resolve().parent}/lib/systemd/system/rnbd-volume@.service')
    log = host.kmsg.read_text()
    equal('log', log.count('\n'), 1)
    equal('log begins', log.startswith('<3>rnbd-generator['), True)
    equal('log ends', log.endswith(f']: {host.volumes}:2: 2 columns; it takes NAME SESSION PATHS '
                                   'VOLUME [OPTIONS]\n'), True)


def test_units_have_the_names_that_are_typed(host):
    """Only a character that units' names can't have is escaped, as systemctl does it then."""
    names = ['.a', 'a-b', 'a.b', 'a:b', 'a@b', 'a_b', '0']
    host.volumes.write_text(''.join(f'{name} s{i} 10.0.0.1 vol\n'
                                    for i, name in enumerate([*names, 'a+b'])))
    equal('units', generate(host, host.top / 'units'),
          sorted(f'multi-user.target.wants/rnbd-volume@{name}.service'
                 for name in [*names, 'a\\x2bb']))


def test_volume_of_an_instance(host):
    """%I of a unit, as systemd-escape --unescape has it"""
    host.client()
    host.session()
    unmap = host.disk() + '/rnbd/unmap_device'
    host.volumes.write_text('vm-1 s1 10.0.0.1 vol1\n')
    host.says('volume map --wait -- vm/1', f'{host.dev}/rnbd0')
    host.run('volume unmap --wait -- vm/1')
    equal('written', host.written(unmap), 'normal')
    host.says('volume map vm/2', "volume called 'vm-2'", code=3)


def test_server_load(host):
    log = host.top / 'modprobe.log'
    host.program('modprobe', f'printf "%s|" "$@" >>{log}; echo >>{log}\n')
    host.run('server load')
    equal('without settings', log.read_text(), 'rtrs_server|\nrnbd_server|\n')
    log.unlink()
    host.server_conf.write_text('# a comment\n\n port_nr=1235\ndev_search_path = "/srv/a b"\n'
                                'max_memory = 512\nalways_invalidate=N')
    host.run('server load')
    equal('with', log.read_text(), 'rtrs_server|always_invalidate="N"|max_memory="512"|\n'
          'rnbd_server|port_nr="1235"|dev_search_path="/srv/a b"|\n')
    log.unlink()
    host.program('modprobe', 'exit 1\n')
    host.says('server load', "rtrs_server can't be loaded", code=1)


def test_server_load_again(host):
    """What can be changed is changed; what can't be is told."""
    host.server_conf.write_text('port_nr=1235\nmax_memory=512\nalways_invalidate=1\n'
                                'dev_search_path=/srv\n')
    host.attributes('module/rtrs_server/parameters', max_memory=0, always_invalidate='Y',
                    slot_size=4096)
    host.attributes('module/rnbd_server/parameters', port_nr=1234, dev_search_path='/srv',
                    listen='N')
    done = host.says('server load', 'port_nr stays 1234 until rnbd_server is loaded again')
    equal('lines', len(done.err.splitlines()), 1)
    equal('max_memory', host.written('module/rtrs_server/parameters/max_memory'), '512')


def test_server_load_knows_all_parameters(host):
    """All that the modules have, and which of them can be changed; the rules have listen"""
    drivers = pathlib.Path(__file__).resolve().parents[4] / 'drivers'
    modes, lines = {}, 0
    for module, where in [('rtrs_server', 'infiniband/ulp/rtrs/server'),
                          ('rnbd_server', 'block/rnbd/server')]:
        for source in sorted((drivers / where).glob('*.c')):
            text = source.read_text()
            lines += len(re.findall(r'^module_param(?!_cb)', text, re.M))
            found = re.findall(r'^module_param(?:_named|_string)?\((\w+),.*, (0\d+)\);', text,
                               re.M)
            modes.update({name: (module, mode) for name, mode in found if name != 'listen'})
    equal('read are all but listen', len(modes), lines - 1)
    host.attributes('module/rnbd_server/parameters', listen='N')
    for name, (module, _) in modes.items():
        host.attributes(f'module/{module}/parameters', **{name: 2})
    for name, (module, mode) in modes.items():
        host.server_conf.write_text(f'{name}=1\n')
        done = host.run('server load')
        equal(f'{name} is told', f'{name} stays 2' in done.err, mode == '0444')
        equal(name, host.written(f'module/{module}/parameters/{name}'),
              '1' if mode == '0644' else '2')


def test_server_load_of_wrong_settings(host):
    """Of them nothing is loaded."""
    host.program('modprobe', f'touch {host.top}/ran\n')
    for text, why in [('port 1', "'port 1' is not NAME = VALUE"),
                      ('port=1', "no parameter 'port'"), ('port_nr=', "'' is no value for port_nr"),
                      ('port_nr="1" "2"', 'is no value'), ('port_nr=1\nport_nr=1', ':3: port_nr is')]:
        host.server_conf.write_text(f'max_memory=1\n{text}\n')
        host.says('server load', f'{host.server_conf}:', why, code=2)
    equal('ran', (host.top / 'ran').exists(), False)
