# SPDX-License-Identifier: GPL-2.0
"""Manual pages: they have the commands and options of the tool, and no others"""

import re
import shlex

from rig import HERE, equal
from cases.grammar import commands

TOOL = HERE.parent
DOCUMENTATION = TOOL.parent.parent / 'Documentation'
# Options that each command takes
COMMON = {'--help', '--verbose', '--bytes'}


def pages():
    """The pages of groups of commands"""
    return sorted(path.name.removesuffix('.8.rst') for path in TOOL.glob('rnbd-*.8.rst'))


def sections(page):
    """Lines of a page, by the titles of its sections"""
    lines = (TOOL / f'{page}.8.rst').read_text().splitlines()
    found, title = {}, ''
    for line, below in zip(lines, lines[1:] + ['']):
        if re.fullmatch('=+', below) and len(below) == len(line):
            title = line
        elif not re.fullmatch('=+', line):
            found.setdefault(title, []).append(line)
    return found


def plain(text):
    """Without markup"""
    return text.replace('\\ ', '').replace('\\', '').replace('*', '')


def synopsis(page):
    """Its lines, each of which may go on in the next ones"""
    text = '\n'.join(sections(page)['SYNOPSIS'])
    return [plain(' '.join(line.split())) for line in re.split(r'^\| ', text, flags=re.M)[1:]]


def definitions(page):
    """What the section COMMANDS says: the options of each command, or None where it has no list"""
    found = []
    for line in sections(page)['COMMANDS']:
        if line.startswith('**rnbd '):
            heads, body = re.findall(r'\*\*(rnbd [^*]+)\*\*', line), []
            found += [(head, body) for head in heads]
        elif line.startswith('    '):
            body.append(line.strip())
    said = {}
    for head, body in found:
        equal(f'{head} in {page} before', head in said, False)
        said[head] = re.search(r'Options: ([^.]*)\.', ' '.join(body))
    return {head: set(re.findall(r'--[\w-]+', match[1])) if match else None
            for head, match in said.items()}


def options(page):
    """Options that the section OPTIONS describes, and their short forms"""
    found = {}
    for line in sections(page).get('OPTIONS', []):
        term = re.match(r'-.*?(?=  |$)', line)
        if term:
            letter = re.match(r'-(\w)', term[0])
            for name in re.findall(r'--([\w-]+)', term[0]):
                found['--' + name] = letter and letter[1]
    return found


def table(host):
    """By page: the usage and the options of each command, as help has them"""
    found = {}
    for side, of, name, _ in commands():
        words = f"rnbd {'server ' if side == 'server' else ''}{of}{name}"
        out = host.run(f"help {'' if side == 'both' else side + ' '}{of}{name}").out
        usage, text = (line.strip() for line in out.splitlines()[:2])
        takes = set(re.search(r'options: (.*)', out)[1].split()) - COMMON
        if text.startswith('as rnbd '):
            usage, takes = f'{words} ...', None
        page, = re.findall(r'manual: (\S+)\(8\)', out)
        found.setdefault(page, {})[words] = usage, takes
    return found


def test_pages_have_all_commands(host):
    found = table(host)
    equal('pages', pages(), sorted(found))
    equal('pages in rnbd help', sorted(re.findall(r', see (\S+)\(8\):$', host.run('help').out, re.M)),
          sorted(found))
    for page, rows in found.items():
        usages = [line for words, (usage, _) in rows.items()
                  for line in usage.replace(', or ', f'\n{words} ').split('\n')]
        equal(f'synopses of {page}', sorted(synopsis(page)), sorted(usages))
        said = definitions(page)
        equal(f'commands of {page}', sorted(said), sorted(rows))
        for words, (_, takes) in rows.items():
            equal(f'options of {words}', said[words], takes or None)


def test_pages_describe_all_options(host):
    """In the page of the command, or in rnbd(8) if commands of several pages take it"""
    general = options('rnbd')
    described = dict(general)
    for page, rows in table(host).items():
        taken = set().union(*(takes for _, takes in rows.values() if takes))
        equal(f'options of {page}', sorted(options(page)), sorted(taken - set(general)))
        described.update(options(page))
    source = (TOOL / 'main.c').read_text()
    known = re.findall(r'\{ "([\w-]+)", \w+, NULL, (?:\'(\w)\'|OPTION_\w+) \}', source)
    equal('some', len(known), source.count('_argument, NULL, '))
    equal('options of the tool', described, {f'--{name}': letter or None for name, letter in known})


def test_overview_has_all_pages(host):
    """With the commands that are not named after their page"""
    whole = '\n'.join(sections('rnbd')['COMMANDS'])
    rows = dict(re.findall(r'^(rnbd-[a-z-]+)\(8\)((?:.*\n)(?:  .*\n)*)', whole, re.M))
    equal('rows', sorted(rows), pages())
    for page, commands_of in table(host).items():
        for words in commands_of:
            *_, of, name = words.split()
            word = of if of != 'server' and page.endswith(of) else name
            equal(f'{words} in the row of {page}', word in re.split(r'\W+', rows[page]), True)
    see = re.findall(r'(rnbd-[a-z-]+)\(8\)', ' '.join(sections('rnbd')['SEE ALSO']))
    equal('see also', sorted(see), pages())


def test_pages_refer_to_pages(_host):
    files = sorted(TOOL.glob('*.[58].rst'))
    for file in files + sorted(DOCUMENTATION.glob('*.rst')):
        for name, section in re.findall(r'\b(rnbd(?:-[a-z]+)*)\((\d)\)', file.read_text()):
            equal(f'{file.name}: {name}({section})', (TOOL / f'{name}.{section}.rst').exists(), True)
    equal('as web pages', sorted(path.stem for path in (DOCUMENTATION / 'man').iterdir()),
          sorted(file.name.split('.')[0] for file in files))


def test_examples_of_pages(host):
    """Each is a command of the tool."""
    number = 0
    for page in ['rnbd', *pages()]:
        for line in sections(page)['EXAMPLES']:
            words = shlex.split(line.partition('# ')[2])
            if words[:1] == ['rnbd']:
                number += 1
                host.run([*words[1:], '--help'])
    equal('some', number > 40, True)
