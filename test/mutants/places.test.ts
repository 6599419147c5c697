import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { stale } from './equivalents.ts'
import { mutantsOf } from './places.ts'

void t.test('each that is marked as equivalent is still there', async (t) => {
  const paths = globSync('src/**/*.ts')
  t.strictSame(stale(paths.flatMap((path) => mutantsOf(path, readFileSync(path, 'utf8')))), [])
})
