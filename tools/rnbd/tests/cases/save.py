# SPDX-License-Identifier: GPL-2.0
"""map --save and unmap --save: lines of the table of volumes"""

from rig import CTL, equal

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
    host.says('map vol1 from s1 --save=other', 'volumes:1: the volume is called vol1', code=2)
    host.says('unmap vol1 --save=vol1', 'unmap DEVICE', code=2)
    host.says('list --save', 'options', code=2)


def test_refused_before_anything_is_mapped(host):
    client(host, b'data s1 10.0.0.1 vol9 failover_timeout=30\nold s1 - vol1\n')
    before = host.volumes.read_bytes()
    for words, why in [('vol2 from s1 10.0.0.2', 'path=ip:10.0.0.2: line 1 has ip:10.0.0.1'),
                       ('vol2 from s1 failover_timeout=5', 'line 1 has 30 for session s1'),
                       ('vol2 from s2 10.0.0.1 key=a,b', "no option 'b'"),
                       ('vol1 from s1 ro', 'volumes:2: volume old has access_mode=, not ro')]:
        host.says(f'map {words} --save', why, code=2)
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


def test_table_that_cannot_be_written(host):
    client(host)
    host.volumes.unlink()
    host.volumes.mkdir()
    host.says('map vol1 from s1 10.0.0.1 --save', 'volumes: Is a directory', code=1)
    equal('mapped', host.written(MAP), '')
