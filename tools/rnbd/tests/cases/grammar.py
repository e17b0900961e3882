# SPDX-License-Identifier: GPL-2.0
"""Words and options as such"""

import re
import subprocess

from rig import CLIENT, CTL, HERE, equal


def test_help(host):
    host.says('help', 'rnbd map', 'rnbd server close', '--json')
    host.says('--help', 'rnbd map')
    host.says('', 'rnbd map', code=2)
    for line in 'map help', 'help map', 'map --help', 'client device map --help', '-h map x':
        done = host.says(line, 'VOLUME [from SESSION]')
        equal('only that', 'unmap' in done.out, False)
    host.says('help path list', 'rnbd path list')
    host.says('--version', 'rnbd ')


def commands():
    """All commands in the tool's table: side, object, name, and whether help hides it"""
    table = (HERE.parent / 'commands.c').read_text()
    rows = re.findall(r'\{ (NULL|"\w+"), "(\w+)", \w+, ON_(\w+), ([^"]*?)[-\d]+,', table)
    equal('rows', len(rows), table.count(', cmd_'))
    found = [(side.lower(), '' if of == 'NULL' else of[1:-1] + ' ', name, 'HIDDEN' in options)
             for of, name, side, options in rows]
    return found + [(side, alias + ' ', name, hidden) for alias, names in aliases(table)
                    for side, of, name, hidden in found if not of and name in names]


def aliases(table):
    """Objects, and commands that can be typed with them as well as without"""
    found = re.findall(r'\{ "(\w+)", "([\w ]+)" \},', table)
    equal('aliases', [of for of, _ in found], ['device'])
    return [(of, names.split()) for of, names in found]


def test_every_command_has_help(host):
    """In its group, by help before and after it, and by --help; those for scripts only by name"""
    whole = host.run('help').out.splitlines()
    equal('for scripts', [name for _, _, name, hidden in commands() if hidden], ['exports', 'hurry', 'name'])
    for side, of, name, hidden in commands():
        usage = '  rnbd ' + ('server ' if side == 'server' else '') + of + name
        where = '' if side == 'both' else side + ' '
        for words in f'help {where}{of}{name}', f'{where}{of}{name} --help', \
                f'{where}{of}{name} help', f'--help {where}{of}{name}':
            out = host.run(words).out.splitlines()
            equal(words, (out[0] + ' ').startswith(usage + ' '), True)
            equal(f'commands in {words}', len([x for x in out if x.startswith('  rnbd ')]), 1)
        listed = [x for x in whole if (x + ' ').startswith(usage + ' ')]
        equal(f'{usage} in rnbd help', len(listed), 0 if hidden else 1)
        if of and not hidden:
            equal(usage, listed[0] in host.run(f'help {where}{of}').out.splitlines(), True)


def test_every_group_has_help(host):
    for side, of, _, _ in commands():
        where = '' if side == 'both' else side + ' '
        if of:
            for words in f'help {where}{of}', f'{where}{of} --help', f'{where}{of}help':
                out = host.run(words).out
                equal(words, [x.split()[1 + (x.split()[1] == 'server')] for x in out.splitlines()
                              if x.startswith('  rnbd ')].count(of.strip()) > 1, True)
                equal(f'only {of}', '  rnbd map' in out, False)
    for side, absent in ('client', 'rnbd server load'), ('server', '  rnbd map'):
        for words in f'help {side}', f'{side} --help', f'{side} help':
            host.says(words, '  rnbd list', 'Options:')
            equal(f'{absent} in {words}', absent in host.run(words).out, False)
    for words in 'help client host', 'client host --help', 'client host help':
        host.says(words, 'host is not for the client', code=2)
    host.says('help client tenant', 'tenant is not for the client', code=2)
    host.says('help server map', 'map is not for the server', code=2)
    out = host.run('help volume list').out
    equal('both sides', [x.split()[1] for x in out.splitlines() if x.startswith('  rnbd ')],
          ['server', 'volume'])


def test_examples_of_a_side(host):
    """Those of commands that the side has"""
    host.says('help help', '  rnbd list', 'Options:')
    out = host.run('help server').out
    for example, want in ('stat --watch 1', True), ('recover storage1', False), \
            ('ping storage1 --count 5', False), ('path add storage1 10.0.1.1', False):
        equal(example, f'    # rnbd {example}\n' in out, want)


def test_examples_in_help(host):
    """Each can be typed."""
    host.pair()
    host.disk(n=1, session='storage1')
    host.session('storage1')
    host.path('storage1')
    host.attributes(CLIENT + '/storage1', add_path='')
    found = [x.split('# ')[1] for x in host.run('help').out.splitlines() if x.startswith('    # ')]
    equal('some', len(found) > 20, True)
    for example in found:
        words = example.split()[1:]
        done = host.run([*words, '--help'])
        equal(example, f'    # {example}' in done.out.splitlines(), True)
        if '--dry-run' in done.out:
            done = subprocess.run(host.command(['-n', *words]), env=host.environment(),
                                  capture_output=True, text=True)
            equal(f'{example}: {done.stderr}', done.returncode in (0, 1, 3, 4), True)


def test_options_in_help(host):
    """Those that a command takes, and no other"""
    out = host.run('help perf').out
    equal('perf', out.split('options: ')[1].splitlines()[0],
          '--help --verbose --bytes --seconds --depth --size --sequential --json')
    host.says('help map', '--dry-run --save', 'failover_timeout=  -1 to 1000000')


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
