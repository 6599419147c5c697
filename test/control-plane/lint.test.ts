import { execFileSync } from 'node:child_process'
import t from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { valueAt } from '../../src/api/kube/json-at.ts'
import { parseManifest } from '../../src/node/lint/manifest.ts'
import { findKubectls } from './kubectl/find.ts'

const [kubectl] = findKubectls().toReversed()

const scalars = [
  'yes, Yes, YES, on, On, y, Y, true, True, no, No, off, OFF, n, N, false, FALSE',
  'oN, yES, tRue, "yes", ~, null, Null, =, <<, _1, 0x',
  '010, 0o10, -012, 08, 09_1, 0_1, 10_267, 1__0, 0x1f, 0b11, -0b11, +12, -0',
  '1., .5, +.5, 1e3, 12e03, 1_000.5, 190:20:30, 1:30, 2001-01-01, 2001-12-14t21:59:43.10-05:00',
]

void t.test(
  'lint reads scalars as kubectl does',
  { skip: kubectl ? false : 'no kubectl on PATH' },
  async (t) => {
    const spec = scalars.map((each) => `  - [${each}]\n`).join('')
    const manifest = `apiVersion: v1\nkind: Pod\nmetadata: { name: p }\nspec:\n${spec}`
    // Needs no API server.
    const args = ['label', '--local', '-f', '-', 'a=b', '-o', 'json']
    const printed = execFileSync(kubectl!.path, args, { input: manifest, encoding: 'utf8' })
    const [read] = parseManifest(manifest).objects
    t.strictSame(read?.object['spec'], valueAt(JSON.parse(printed) as Json, 'spec'))
  },
)
