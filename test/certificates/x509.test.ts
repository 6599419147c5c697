import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { plainNode } from '../kit/cluster/plain-node.ts'

const source = (path: string): string =>
  JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)

/** Prints which of the two packages have been loaded so far. */
const program = `
import { registerHooks } from 'node:module'
const loaded = new Set()
registerHooks({
  load(url, context, next) {
    const [, name] = /node_modules[/](@peculiar[/]x509|jose)[/]/.exec(url) ?? []
    if (name) loaded.add(name)
    return next(url, context)
  },
})
const steps = []
const step = () => steps.push([...loaded].toSorted())
await import(${source('hub/hub.ts')})
await import(${source('cli/start.ts')})
step()
const { loadX509 } = await import(${source('certificates/x509.ts')})
await loadX509()
step()
const { isSignedWith } = await import(${source('certificates/detached-signature.ts')})
await isSignedWith({ id: 'abcdef', secret: '0123456789abcdef' }, 'text', 'e30..e30')
step()
console.log(JSON.stringify(steps))
`

void t.test('the packages for certificates and tokens are loaded when first used', async (t) => {
  const file = join(t.testdir(), 'steps.mjs')
  writeFileSync(file, program)
  const [command, args] = plainNode(file)
  const { stdout } = await promisify(execFile)(command, args, { encoding: 'utf8' })
  t.strictSame(JSON.parse(stdout), [[], ['@peculiar/x509'], ['@peculiar/x509', 'jose']])
})
