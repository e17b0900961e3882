# SPDX-License-Identifier: GPL-2.0
"""map --save and unmap --save: lines of the table of volumes"""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import time

from rig import CTL, Skip, equal

MAP = CTL + '/map_device'
TABLE = b'# a comment\n\n \tdata s1\t10.0.0.1,10.0.1.1 vol9 nofail \n\xff\x00 wrong\n# end'


def client(host, text=TABLE):
    host.client()
    host.session()
    host.disk()
    host.volumes.write_bytes(text)


def test_save(host):
    client(host)
    host.volumes.chmod(0o640)
    done = host.run('map vol1 from s1 ro --save')
    equal('output', done.out, f'{host.dev}/rnbd0\n')
    equal('written', host.written(MAP), 'sessname=s1 device_path=vol1 access_mode=ro')
    saved = TABLE + b'\nvol1 s1 10.0.0.1,10.0.1.1 vol1 access_mode=ro\n'
    equal('table', host.volumes.read_bytes(), saved)
    equal('mode', host.volumes.stat().st_mode & 0o777, 0o640)
    host.run('map vol1 from s1 ro --save')
    equal('not twice', host.volumes.read_bytes(), saved)
    host.run('unmap rnbd0 --save')
    equal('unmapped', host.written('block/rnbd0/rnbd/unmap_device'), 'normal')
    equal('removed', host.volumes.read_bytes(), TABLE + b'\n')
    host.run('unmap rnbd0 --save')
    equal('nothing to remove', host.volumes.read_bytes(), TABLE + b'\n')


def test_save_is_durable(host):
    client(host)
    host.run('map vol1 from s1 --save')
    synced = (host.top / 'synced').read_text().split()
    equal('order', [path.startswith(f'{host.volumes}.') for path in synced], [True, False])
    equal('directory', synced[1], str(host.top))


def test_saved_lines_map_the_same(host):
    """What is saved is read back as what was mapped."""
    client(host)
    for device, words in [('vol1', '10.0.0.2@10.0.0.1 fd00::1 failover_timeout=300 mp_policy=rr'),
                          ('/dev/vg0/a#b', 'gid:fe80::1 fe80::2%lo,fe80::1%lo key=rnbd:x ro'),
                          ('a\\040b', '10.0.0.1 nr_queues=4 dest_port=1235')]:
        host.volumes.unlink()
        mapped = host.run(['-n', 'map', device, 'from', 's2', *words.split()]).err.split("'")[1]
        host.disk(n=1, session='s2', path=device)
        host.run(['map', device, 'from', 's2', *words.split(), '--save=new'])
        host.says('volume check', '1 volumes')
        # A volume that is mapped is left alone.
        (host.sys / 'block/rnbd1/rnbd/session').write_text('other\n')
        line = host.run('-n volume map new').err.split("'")[1]
        equal(device, sorted(line.split()), sorted(mapped.split()))


def test_names(host):
    client(host, b'')
    for n, (device, want) in enumerate([
            ('vol1', 'vol1'), ('dir/vol1', 's1-vol1'), ('/dev/a,b', 'a_b'), ('all', 's1-all'),
            ('-x', '_x'), ('d' * 60, 'd' * 50)]):
        host.disk(n=n, path=device)
        host.run(['map', '--save', '--', device, 'from', 's1', '10.0.0.1'])
        equal(device, host.volumes.read_text().splitlines()[-1].split()[0], want)
    host.says('volume check', '6 volumes')
    host.disk(n=7, path='x/vol1')
    host.says('map x/vol1 from s1 --save=vol1', 'vol1: line 1 has that name', code=2)
    host.says('map x/vol1 from s1 --save=x/y', 'names are of letters', code=2)
    for name in '', 'a b', '#x', '-x', 'all', 'x' * 51:
        done = host.run(['map', 'vol2', 'from', 's1', f'--save={name}'], code=2)
        equal(f'{name} in one line', len(done.err.splitlines()), 1)
    host.says('map vol2 from s1 --save data', 'does not resolve', '--save=NAME', code=3)
    host.says('map vol1 from s1 --save=other', 'volumes:1: the volume is called vol1', code=2)
    for words in 'vol1', 'vol1 from s1':
        host.says(f'unmap {words} --save=vol1', 'unmap DEVICE', code=2)
    host.says('list --save', 'options', code=2)


def test_refused_before_anything_is_mapped(host):
    client(host, b'data s1 10.0.0.1 vol9 failover_timeout=30\nold s1 - vol1\n')
    before = host.volumes.read_bytes()
    host.refuses('map {} --save', [
        ('vol2 from s1 10.0.0.2', 'path=ip:10.0.0.2: line 1 has ip:10.0.0.1'),
        ('vol2 from s1 failover_timeout=5', 'line 1 has 30 for session s1'),
        ('vol2 from s2 10.0.0.1 key=a,b', "no option 'b'"),
        ('vol2 from - 10.0.0.1', "can't be saved: vol2 - 10.0.0.1 vol2"),
        ('vol2 from s2 10.0.0.1 key=a,noauto', "can't be saved: vol2 s2"),
        ('vol2 from s2 10.0.0.1 key=a,nr_queues=2', "can't be saved: vol2 s2"),
        ('vol1 from s1 ro', 'volumes:2: volume old has no access_mode')])
    equal('mapped', host.written(MAP), '')
    host.refuse(MAP, 'EIO')
    host.says('map vol2 from s2 10.0.0.1 --save', 'EIO', code=1)
    equal('after an error', host.volumes.read_bytes(), before)


def test_paths_of_an_open_session(host):
    """Nobody names them again for the second volume, but a boot needs them."""
    client(host, b'')
    host.path(net=0)
    host.path(net=1)
    host.run('map vol1 from s1 --save')
    equal('table', host.volumes.read_text(),
          'vol1 s1 192.168.100.2@192.168.100.1,192.168.101.2@192.168.101.1 vol1\n')


def test_what_other_lines_need_is_not_removed(host):
    client(host)
    for text in 'a s1 10.0.0.1 vol1\nb s1 - vol2\n', \
            'a s1 10.0.0.1 vol1 hb_max_missed=3\nb s1 10.0.0.1 vol2\n':
        host.volumes.write_text(text)
        host.says('unmap rnbd0 --save', 'volumes:2: volume b needs paths or options of line 1', code=2)
        equal('still mapped', host.written('block/rnbd0/rnbd/unmap_device'), '')
        equal('table', host.volumes.read_text(), text)


def test_options_of_the_session_are_saved_with_each_volume(host):
    """So that each line can be removed."""
    client(host, b'a s1 10.0.0.1 vol2 hb_max_missed=3\n')
    host.run('map vol1 from s1 --save')
    host.disk(n=1, path='vol2')
    host.run('unmap vol2 --save')
    equal('left', host.volumes.read_text(), 'vol1 s1 10.0.0.1 vol1 hb_max_missed=3\n')


def test_second_line_of_the_device(host):
    """It is ignored, until the first one is gone."""
    client(host, b'a s1 10.0.0.1 vol1\n# x\nb s1 10.0.0.1 vol1\n')
    host.run('unmap vol1 --save')
    equal('left', host.volumes.read_text(), '# x\n')


def test_save_dry_run(host):
    client(host)
    host.says('-n map vol1 from s1 --save', "echo 'vol1 s1 10.0.0.1,10.0.1.1 vol1' >> '")
    host.disk(n=1, path='vol9')
    host.says('-n unmap vol9 --save', "sed -i 3d '")
    equal('table', host.volumes.read_bytes(), TABLE)


def test_line_that_says_something_else(host):
    """What isn't given is no difference, except for the mode, which is rw then."""
    client(host, b'')
    for options, words, why in [
            ('-', 'rw', None), ('access_mode=rw', '', None), ('mp_policy=rr', 'mp_policy=RR', None),
            ('failover_timeout=5', '', None), ('nofail', '', None),
            ('access_mode=ro', '', 'volume a has access_mode=ro, not rw'),
            ('noauto', '', 'volume a has noauto'),
            ('-', 'hb_max_missed=3', 'volume a has no hb_max_missed'),
            ('mp_policy=rr', 'mp_policy=mi', 'has mp_policy=round-robin, not min-inflight')]:
        text = f'a s1 10.0.0.1 vol1 {options}\n'
        host.volumes.write_text(text)
        if why:
            host.says(f'map vol1 from s1 {words} --save', why, code=2)
        else:
            host.run(f'map vol1 from s1 {words} --save')
        equal('table', host.volumes.read_text(), text)


def test_what_is_mapped_already_is_saved(host):
    client(host, b'')
    host.refuse(MAP, 'EEXIST')
    done = host.run('map vol1 from s1 10.0.0.1 --save')
    equal('output', done.out, f'{host.dev}/rnbd0\n')
    equal('table', host.volumes.read_text(), 'vol1 s1 10.0.0.1 vol1\n')
    host.says('map vol1 from s1 10.0.0.1', 'mapped already', code=1)


def test_what_is_not_mapped_is_removed(host):
    text = b'a s1 10.0.0.1 vol2\nb s2 10.0.0.1 vol2\n# end\n'
    client(host, text)
    host.says('unmap vol2 --save', '2 lines', code=3)
    host.says('unmap vol3 --save', "no device is called 'vol3'", code=3)
    host.says('unmap a from s2 --save', "no device is called 'a'", code=3)
    host.says('-n unmap a --save', 'sed -i 1d')
    equal('table', host.volumes.read_bytes(), text)
    host.says('unmap vol2 from s2 --save', 'vol2 was not mapped')
    host.says('unmap a --save', 'a was not mapped')
    equal('left', host.volumes.read_text(), '# end\n')


def test_errors_of_other_lines(host):
    """They are not those of the line that is saved or removed."""
    client(host, b'vol1 s1 10.0.0\nvol1-x s1 10.0.0.1 vol2\n')
    done = host.run('map vol1 from s1 --save')
    equal('says', done.err, '')
    host.volumes.write_bytes(b'vol1 s1 10.0.0 vol1\n')
    host.says('unmap vol1 --save', f'no line of vol1 in {host.volumes}')
    done = host.run('map vol1 from s1 10.0.0.1 --save=x/y', code=2)
    equal('said once', done.err.count('names are of letters'), 1)


def test_table_that_cannot_be_written(host):
    client(host)
    host.volumes.unlink()
    host.volumes.mkdir()
    host.says('map vol1 from s1 10.0.0.1 --save', 'volumes: Is a directory', code=1)
    equal('mapped', host.written(MAP), '')
    host.volumes.rmdir()
    host.volumes.symlink_to(host.top / 'absent')
    host.says('map vol1 from s1 10.0.0.1 --save', 'not a regular file', code=1)
    equal('mapped', host.written(MAP), '')


def full_fifo(path):
    """Replace a file by a FIFO to which nothing can be written until it is read."""
    path.unlink()
    os.mkfifo(path)
    fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(fifo, bytes(4096))
    return fifo


def opened(process, path):
    """Wait until the process has the file open."""
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if str(path) in map(os.readlink, pathlib.Path(f'/proc/{process.pid}/fd').iterdir()):
                return
        time.sleep(0.01)


def test_table_that_becomes_a_directory(host):
    """What has happened to the device by then is said."""
    client(host, b'')
    for line, attribute, why in [
            ('unmap vol1', 'block/rnbd0/rnbd/unmap_device', 'rnbd0 is unmapped, its line is still'),
            ('map vol1 from s1 10.0.0.1', MAP, 'vol1 is mapped, but not saved')]:
        host.volumes.write_text('' if line.startswith('map') else 'data s1 10.0.0.1 vol1\n')
        fifo = full_fifo(host.sys / attribute)
        process = subprocess.Popen(host.command(line + ' --save'), env=host.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        opened(process, host.sys / attribute)
        host.volumes.unlink()
        host.volumes.mkdir()
        while process.poll() is None:
            with contextlib.suppress(BlockingIOError):
                os.read(fifo, 1 << 20)
            time.sleep(0.01)
        os.close(fifo)
        said = process.communicate()[1]
        equal(f'{line}: {said}', (why in said, process.returncode), (True, 1))
        host.volumes.rmdir()


def test_directory_of_the_table(host):
    client(host)
    host.volumes = host.top / 'etc/volumes'
    host.says('-n map vol1 from s1 10.0.0.1 --save', f"mkdir '{host.top}/etc'")
    equal('dry run', (host.top / 'etc').exists(), False)
    host.run('map vol1 from s1 10.0.0.1 --save')
    equal('table', host.volumes.read_text(), 'vol1 s1 10.0.0.1 vol1\n')
    equal('mode', (host.top / 'etc').stat().st_mode & 0o777, 0o755)
    equal('files', os.listdir(host.top / 'etc'), ['volumes'])


def test_link_to_the_table(host):
    client(host, b'')
    real = host.top / 'real'
    host.volumes.rename(real)
    host.volumes.symlink_to('real')
    host.run('map vol1 from s1 10.0.0.1 --save')
    equal('link', os.readlink(host.volumes), 'real')
    equal('saved', real.read_text(), 'vol1 s1 10.0.0.1 vol1\n')
    host.run('unmap vol1 --save')
    equal('removed', real.read_text(), '')


def test_lock(host):
    """Those who may read the table can't lock it; others are waited for."""
    client(host, b'')
    directory = os.open(host.top, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    host.run('map vol1 from s1 10.0.0.1 --save')
    os.close(directory)
    equal('mode', (host.top / 'lock').stat().st_mode & 0o777, 0o600)
    with open(host.top / 'lock') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        host.says('unmap vol1 --save', 'is being changed by another program', code=1)
    equal('unmapped', host.written('block/rnbd0/rnbd/unmap_device'), '')


def test_owner_of_the_table(host):
    if os.geteuid():
        raise Skip('not root')
    client(host, b'')
    os.chown(host.volumes, 12, 34)
    host.volumes.chmod(0o660)
    host.run('map vol1 from s1 10.0.0.1 --save')
    st = host.volumes.stat()
    equal('owner', (st.st_uid, st.st_gid, st.st_mode & 0o777), (12, 34, 0o660))
