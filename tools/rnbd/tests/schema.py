# SPDX-License-Identifier: GPL-2.0
"""The tool's JSON against schema.json"""

import json
import pathlib

import jsonschema

from rig import Wrong

SCHEMAS = json.loads((pathlib.Path(__file__).resolve().parent / 'schema.json').read_text())


def check(name, document):
    schema = {'$ref': '#/definitions/' + name, 'definitions': SCHEMAS['definitions']}
    try:
        jsonschema.Draft7Validator(schema).validate(document)
    except jsonschema.ValidationError as e:
        raise Wrong(f'{name}: {e}') from None
