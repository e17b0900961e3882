# SPDX-License-Identifier: GPL-2.0
"""Words and options as such"""

from rig import equal


def test_help(host):
    host.says('help', 'rnbd map', 'rnbd server close', '--json')
    host.says('--help', 'rnbd map')
    host.says('', 'rnbd map', code=2)
    for line in 'map help', 'help map':
        done = host.says(line, 'DEVICE from SESSION')
        equal('only that', 'unmap' in done.out, False)
    host.says('help path list', 'rnbd path list')
    host.says('--version', 'rnbd ')


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
    host.says('-v unmap rnbd0', 'echo "normal" >', 'rnbd0/rnbd/unmap_device')


def test_sysfs_option(host):
    host.says('--sysfs /nonexistent list', 'loaded', code=4)


def test_output_that_cannot_be_written(host):
    host.client()
    host.disk()
    import subprocess
    with open('/dev/full', 'w') as full:
        done = subprocess.run(host.command('list'), env=host.environment(), stdout=full,
                              stderr=subprocess.PIPE, text=True)
    equal('code', done.returncode, 1)
    equal('says', "can't write" in done.stderr, True)
