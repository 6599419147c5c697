import { existsSync, globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { stale } from './equivalents.ts'
import { mutantsOf } from './places.ts'
import { placed, reviewed } from './reviewed.ts'

void t.test('each that is marked as equivalent is still there', async (t) => {
  const paths = globSync('src/**/*.ts')
  t.strictSame(stale(paths.flatMap((path) => mutantsOf(path, readFileSync(path, 'utf8')))), [])
})

void t.test(
  'each of the review is still there, once, and so is the test that kills it',
  async (t) => {
    for (const each of reviewed) {
      const source = readFileSync(each.path, 'utf8')
      const { start, was } = placed(each, source)
      t.equal(source.slice(start, start + was.length), each.was)
      t.ok(existsSync(each.test), each.test)
    }
    for (const source of ['if (b) d()', 'if (a) c(); if (a) d()']) {
      const lost = { path: 'src/a.ts', was: 'if (a)', becomes: '', breaks: '', test: '' }
      t.throws(() => placed(lost, source), { message: / times in src\/a\.ts: if \(a\)$/ })
    }
  },
)
