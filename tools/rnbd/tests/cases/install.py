# SPDX-License-Identifier: GPL-2.0
"""Completion, and what is installed where"""

import os
import shutil
import subprocess

from rig import HERE, Skip, Wrong, equal


def complete(host, line):
    """What bash offers at the end of a line"""
    script = f'''. {HERE.parent}/rnbd.bash
        rnbd() {{ {host.build.tool} "$@"; }}
        read -ra COMP_WORDS <<<"{line} x"
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMP_WORDS[COMP_CWORD]={'' if line[-1] == ' ' else line.split()[-1]}
        _rnbd
        printf '%s\\n' "${{COMPREPLY[@]}}"'''
    if line[-1] != ' ':
        script = script.replace(f'"{line} x"', f'"{line}"')
    done = subprocess.run(['bash', '-c', script], env=host.environment(), capture_output=True,
                          text=True, cwd=host.top)
    if done.stderr:
        raise Wrong(done.stderr)
    return done.stdout.split()


def test_completion(host):
    host.client()
    host.session()
    host.path()
    host.disk()
    for line, want in [('rnbd un', ['unload', 'unmap']), ('rnbd unmap ', ['rnbd0']),
                       ('rnbd path add ', ['s1']), ('rnbd show rn', ['rnbd0']),
                       ('rnbd session set ', ['s1']), ('rnbd disc', ['discover']),
                       ('rnbd discover ', ['s1']), ('rnbd map --al', ['--all']),
                       ('rnbd discover 10.0.0.1 ses', ['session=']),
                       ('rnbd discover 10.0.0.1 nr_p', ['nr_poll_queues=']),
                       ('rnbd map --all ', ['s1']), ('rnbd map --all 10.0.0.1 fr', ['from']),
                       ('rnbd session set s1 fail', ['failover_timeout=']),
                       ('rnbd session set s1 hb_max_missed=3 hb_i', ['hb_interval_ms=']),
                       ('rnbd map vol1 from s1 nr_q', ['nr_queues=']),
                ('rnbd map vol1 10.0.0.1 nr_q', ['nr_queues=']),
                       ('rnbd map vol1 10.0.0.1 nr_q', ['nr_queues=']),
                       ('rnbd map vol1 from s1 --s', ['--save']), ('rnbd list --s', []),
                       ('rnbd remap rnbd0 --s', []), ('rnbd volume map data --s', []),
                       ('rnbd device unmap rnbd0 --s', ['--save']),
                       ('rnbd map vol1 from s1 nr_queues =', []),
                       ('rnbd session set s1 hb_max_missed = ', []),
                       ('rnbd help un', ['unload', 'unmap']), ('rnbd server host set ', []),
                       ('rnbd server volume add ', []),
                       ('rnbd path de', ['delete']), ('rnbd list --js', ['--json']),
                       ('rnbd path delete ', ['ip:192.168.100.2@ip:192.168.100.1']),
                       ('rnbd server cl', ['clear', 'client', 'close'])]:
        equal(line, sorted(complete(host, line)), want)
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    equal('volumes', sorted(complete(host, 'rnbd volume map ')), ['all', 'data'])
    commands = complete(host, 'rnbd ')
    for want in 'map', 'stat', 'top', 'health', 'close', 'session':
        equal(want, want in commands, True)


def test_completion_of_names_that_are_commands(host):
    """Clients of a server choose the names of sessions."""
    host.client()
    for name in '$(touch${IFS}pwned)', '`touch${IFS}pwned`', 's;touch', '*':
        host.session(name)
    host.session('s1')
    got = complete(host, 'rnbd path add ')
    equal('ran', (host.top / 'pwned').exists(), False)
    equal('quoted', sorted(got), sorted([r'\$\(touch\$\{IFS\}pwned\)',
                                         r'\`touch\$\{IFS\}pwned\`', r's\;touch', r'\*', 's1']))


def complete_zsh(host, line):
    """What zsh offers at the end of a line"""
    words = ['rnbd', *line.split()[1:], *([''] if line[-1] == ' ' else [])]
    done = subprocess.run(['zsh', '-f', '-c', f'''
        rnbd() {{ {host.build.tool} "$@"; }}
        compadd() {{ while [[ $1 != -- ]] {{ shift }}; shift
            for word; do [[ $word != $words[-1]* ]] || print -r -- $word; done }}
        words=("$@") CURRENT=$#; . {HERE.parent}/_rnbd''', 'zsh', *words],
                          env=host.environment(), capture_output=True, text=True, cwd=host.top)
    if done.stderr:
        raise Wrong(done.stderr)
    return done.stdout.splitlines()


def complete_fish(host, line):
    """What fish offers at the end of a line; with question marks as in its version 4"""
    (host.top / 'bin/rnbd').unlink(missing_ok=True)
    host.program('rnbd', f'exec {host.build.tool} "$@"\n')
    done = subprocess.run(['fish', '--no-config', '--features=qmark-noglob', '-c', f'source {HERE.parent}/rnbd.fish; '
                           'complete -C "$argv"', line], capture_output=True, text=True,
                          env={**host.environment(), 'HOME': str(host.top)}, cwd=host.top)
    if done.stderr:
        raise Wrong(done.stderr)
    return done.stdout.splitlines()


def test_completion_of_zsh_and_fish(host):
    host.client()
    evil = '$(touch${IFS}pwned)'
    for name in evil, 's1':
        host.session(name)
    host.path()
    host.disk()
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    path = 'ip:192.168.100.2@ip:192.168.100.1'
    shells = [shell for shell in ('zsh', 'fish') if shutil.which(shell)]
    for shell in shells:
        for line, want in [
                ('rnbd un', ['unload', 'unmap']), ('rnbd server cl', ['clear', 'client', 'close']),
                ('rnbd sess', ['session']), ('rnbd session re', ['reconnect', 'recover', 'remap']),
                ('rnbd paths de', ['delete']), ('rnbd unmap ', ['rnbd0']),
                ('rnbd -v client unmap ', ['rnbd0']), ('rnbd map vol1 ', ['from']),
                ('rnbd unmap vol1 from s1 ', ['force', 'from']),
                ('rnbd map vol1 from ', [evil, 's1']), ('rnbd path delete i', [path]),
                ('rnbd map vol1 from s1 nr_q', ['nr_queues=']),
                ('rnbd session set s1 failover', ['failover_timeout=']),
                ('rnbd discover ', [evil, 's1']), ('rnbd discover 10.0.0.1 ses', ['session=']),
                ('rnbd discover 10.0.0.1 fr', ['from']), ('rnbd map --al', ['--all']),
                ('rnbd list --no', ['--no-headings']), ('rnbd map vol1 --sa', ['--save']),
                ('rnbd volume map ', ['all', 'data']), ('rnbd policy ', ['listed', 'open'])]:
            got = (complete_zsh if shell == 'zsh' else complete_fish)(host, line)
            equal(f'{shell}: {line}', sorted(x.replace('\\', '') for x in got), want)
    equal('ran', (host.top / 'pwned').exists(), False)
    if len(shells) < 2:
        raise Skip('not all of zsh and fish')


def test_completion_without_names(host):
    """Nothing is offered, and no empty word either."""
    host.client()
    for shell, complete_it in ('bash', complete), ('zsh', complete_zsh), ('fish', complete_fish):
        if not shutil.which(shell):
            raise Skip(f'no {shell}')
        equal(shell, complete_it(host, 'rnbd map vol1 from '), [])


def test_install(host):
    subprocess.run(['make', '-s', '-C', HERE.parent, f'OUT={host.top}/out',
                    f'DESTDIR={host.top}/root', 'prefix=/usr', 'install'], check=True)
    found = sorted(os.path.relpath(os.path.join(folder, name), host.top / 'root')
                   for folder, _, names in os.walk(host.top / 'root') for name in names)
    pages = [f'usr/share/man/man8/{page.stem}' for page in HERE.parent.glob('*.8.rst')]
    equal('pages', len(pages) > 10, True)
    equal('installed', found, sorted([
        'usr/sbin/rnbd', 'usr/share/bash-completion/completions/rnbd',
        'usr/share/fish/vendor_completions.d/rnbd.fish', 'usr/share/man/man5/rnbd-volumes.5',
        'usr/share/zsh/site-functions/_rnbd', *pages]))


BOOT = HERE.parent.parent / 'boot'


def test_install_for_systemd(host):
    root = host.top / 'root'
    (root / 'etc/rnbd').mkdir(parents=True)
    (root / 'etc/rnbd/volumes').write_text('mine\n')
    subprocess.run(['make', '-s', '-C', BOOT, f'OUT={host.top}/out', f'DESTDIR={root}',
                    'prefix=/usr', 'install'], check=True)
    found = sorted(os.path.relpath(os.path.join(folder, name), root)
                   for folder, _, names in os.walk(root) for name in names)
    equal('installed', found, ['etc/rnbd/server.conf', 'etc/rnbd/volumes',
                               'usr/lib/systemd/system-generators/rnbd-generator',
                               'usr/lib/systemd/system/blk-availability.service.d/rnbd.conf',
                               'usr/lib/systemd/system/rnbd-hurry.service',
                               'usr/lib/systemd/system/rnbd-metrics.service',
                               'usr/lib/systemd/system/rnbd-metrics.timer',
                               'usr/lib/systemd/system/rnbd-server.service',
                               'usr/lib/systemd/system/rnbd-volume@.service',
                               'usr/lib/udev/rules.d/60-persistent-rnbd.rules',
                               'usr/lib/udev/rules.d/63-rnbd-server.rules'])
    equal('generator', os.readlink(root / found[2]), '../../../sbin/rnbd')
    equal('configuration', (root / found[1]).read_text(), 'mine\n')
    host.server_conf.write_text((root / found[0]).read_text())
    host.program('modprobe', 'exit 0\n')
    host.run('server load')
    host.volumes.write_text((BOOT / 'volumes').read_text().replace('#data', 'data'))
    host.says('volume check', '1 volumes')


def test_units_and_rules(host):
    """What systemd and udev say of them: nothing. Both know their mistakes in newer versions."""
    subprocess.run(['make', '-s', '-C', BOOT, f'OUT={host.top}/out', f'DESTDIR={host.top}/root', f'OUT={host.top}/out',
                    f'sbindir={host.build.work}', 'unitdir=/units', 'install'], check=True)
    units = [path for path in (host.top / 'root/units').iterdir() if path.is_file()]
    for command in (['systemd-analyze', 'verify', '--man=no', *units],
                    ['udevadm', 'verify', host.top / 'out/60-persistent-rnbd.rules',
                     host.top / 'out/63-rnbd-server.rules']):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            continue
        # They also look at what else is installed on this machine.
        wrong = [line for line in (done.stdout + done.stderr).splitlines() if 'rnbd' in line]
        if wrong and 'Unknown command verb' not in done.stderr:
            raise Wrong('\n'.join(wrong))
