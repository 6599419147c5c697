import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { differences } from './differences.ts'
import { table } from './table.ts'

const page = readFileSync(
  join(import.meta.dirname, '..', '..', 'docs', 'design', 'differences.md'),
  'utf8',
)

void t.test(
  'each difference that is tolerated has its section, and none is left over',
  async (t) => {
    const sections = [...page.matchAll(/^## `([^`]+)`/gm)].map(([, name = '']) => name)
    t.strictSame(new Set(sections), new Set<string>(differences))
  },
)

void t.test('no difference is tolerated by name alone', async (t) => {
  const used = table.flatMap(({ cases }) => cases.flatMap(({ differs }) => differs?.name ?? []))
  t.strictSame(new Set<string>([...used, 'connections']), new Set<string>(differences))
})

void t.test('some hundreds of requests are compared', async (t) => {
  t.ok(table.flatMap(({ cases }) => cases).length > 400)
})
