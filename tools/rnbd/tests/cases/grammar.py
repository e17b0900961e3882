# SPDX-License-Identifier: GPL-2.0
"""Words and options as such"""

import subprocess

from rig import CTL, equal


def test_help(host):
    host.says('help', 'rnbd map', 'rnbd server close', '--json')
    host.says('--help', 'rnbd map')
    host.says('', 'rnbd map', code=2)
    for line in 'map help', 'help map', 'map --help', 'client device map --help', '-h map x':
        done = host.says(line, 'DEVICE from SESSION')
        equal('only that', 'unmap' in done.out, False)
    host.says('help path list', 'rnbd path list')
    host.says('--version', 'rnbd ')


def test_objects_before_verbs(host):
    """What is done to a device, a session or a path may be said with that word before it."""
    host.pair()
    for line in ('client device map vol1 from s1', 'device unmap vol1', 'client device resize rnbd0 2G',
                 'device remap rnbd0', 'device recover rnbd0', 'server device close sda',
                 'session recover s1', 'session remap s1', 'path recover s1 rxe0',
                 'client path recover rxe0'):
        host.run(f'-n {line}')
    host.disk(n=1, state='closed', path='vol2')
    host.run('session remap s1')
    equal('remapped', host.written('block/rnbd1/rnbd/remap_device'), '1')
    host.path(net=1, state='disconnected')
    host.says('path recover s1 rxe1', 'is connected')
    host.path(net=0, state='disconnected')
    host.says('path recover all', '192.168.100', '192.168.101')
    host.says('device recover s1', "no device is called 's1'", code=3)
    host.says('session recover rnbd0', "no session is called 'rnbd0'", code=3)
    host.says('path recover rnbd0', "no path is called 'rnbd0'", code=3)


def test_unknown(host):
    host.says('nonsense', "no command 'nonsense'", code=2)
    host.says('path nonsense', "no command 'path nonsense'", code=2)
    host.says('help nonsense', "no command 'nonsense'", code=2)
    host.says('list --nonsense', 'nonsense', code=2)


def test_options_that_a_command_does_not_take(host):
    host.client()
    host.says('unmap rnbd0 --json', 'options', code=2)
    host.says('list --dry-run', 'options', code=2)


def test_verbose(host):
    host.client()
    host.disk()
    host.says('-v unmap rnbd0', "echo 'normal' > '", "rnbd0/rnbd/unmap_device'")


def test_what_is_told_can_be_typed(host):
    host.client()
    for path in "a'b", '$(touch${IFS}pwned)', '";touch${IFS}pwned;"', 'x\x1b\x9by':
        line = host.run(['-n', 'map', path, 'from', 's1']).err.splitlines()[0]
        equal('no controls', [c for c in line if ord(c) < 32 or 127 <= ord(c) < 160], [])
        shell = subprocess.run(['bash', '-c', line], capture_output=True, text=True)
        equal('the shell: ' + shell.stderr, shell.returncode, 0)
        equal('written', host.written(CTL + '/map_device'), f'sessname=s1 device_path={path}')


def test_sysfs_option(host):
    host.says('--sysfs /nonexistent list', 'loaded', code=4)


def test_output_that_cannot_be_written(host):
    host.client()
    host.disk()
    with open('/dev/full', 'w') as full:
        done = subprocess.run(host.command('list'), env=host.environment(), stdout=full,
                              stderr=subprocess.PIPE, text=True)
    equal('code', done.returncode, 1)
    equal('says', "can't write" in done.stderr, True)
