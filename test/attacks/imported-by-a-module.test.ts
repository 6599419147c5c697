/**
 * Filters are code that runs as root: what they import is run as well, and has to be as trusted as
 * they are.
 */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { loadFilters } from '../../src/hub/filter/own/load.ts'
import { FilterFolder, moduleOf } from '../kit/own-filter.ts'

const ran = globalThis as { planted?: string[] }

/** What an attacker would write into a file that others may write. */
const planted = (name: string): string =>
  `(globalThis.planted ??= []).push(${JSON.stringify(name)}); export const value = 'leave'`

/** Files below a folder of the test, each as trusted as the folder itself. */
function written(t: Test, files: Readonly<Record<string, string>>): string {
  const { path: folder } = new FilterFolder(t)
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
    writeFileSync(path, content, { mode: 0o644 })
  }
  return folder
}

const filter = moduleOf('own', `'leave'`)

async function mistakesIn(file: string): Promise<string> {
  const loaded = await loadFilters([file], [])
  return 'mistakes' in loaded ? loaded.mistakes.join('\n') : 'none'
}

const ways: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'by its relative path': { 'own.mjs': `import './writable.mjs'\n${filter}` },
  'again by another module': {
    'own.mjs': `import './between.mjs'\n${filter}`,
    'between.mjs': `export * from './writable.mjs'`,
  },
  'while it runs': { 'own.mjs': `await import('./writable.mjs')\n${filter}` },
  'with a query': { 'own.mjs': `import './writable.mjs?1'\n${filter}` },
  'by require': {
    'own.mjs': `import { createRequire } from 'node:module'
      createRequire(import.meta.url)('./writable.mjs')
      ${filter}`,
  },
}

for (const [way, files] of Object.entries(ways)) {
  void t.test(`a file that others may write is not imported ${way}`, async (t) => {
    delete ran.planted
    const folder = written(t, { ...files, 'writable.mjs': planted(way) })
    chmodSync(join(folder, 'writable.mjs'), 0o666)
    const mistakes = await mistakesIn(join(folder, 'own.mjs'))
    t.match(mistakes, /it imports \S+writable\.mjs, which is not trusted: .*\(mode 666\)/)
    t.equal(ran.planted, undefined, 'nothing of it was run')
  })
}

void t.test('a package in a world-writable folder is not imported', async (t) => {
  delete ran.planted
  const folder = written(t, {
    'own.mjs': `import 'evil'\n${filter}`,
    'node_modules/evil/package.json': '{"name":"evil","type":"module","exports":"./index.js"}',
    'node_modules/evil/index.js': planted('package'),
  })
  chmodSync(join(folder, 'node_modules/evil'), 0o777)
  t.match(await mistakesIn(join(folder, 'own.mjs')), /index\.js, which is not trusted/)
  t.equal(ran.planted, undefined)
})

void t.test('a link in or into a world-writable folder is not imported', async (t) => {
  delete ran.planted
  const folder = written(t, {
    'own.mjs': `import './link.mjs'\n${filter}`,
    'through.mjs': `import './open/link.mjs'\n${filter}`,
    'open/theirs.mjs': planted('theirs'),
    'trusted.mjs': planted('trusted'),
  })
  symlinkSync('open/theirs.mjs', join(folder, 'link.mjs'))
  symlinkSync('../trusted.mjs', join(folder, 'open/link.mjs'))
  chmodSync(join(folder, 'open'), 0o777)
  for (const name of ['own.mjs', 'through.mjs'])
    t.match(await mistakesIn(join(folder, name)), /not trusted: \S+open may be written/, name)
  t.equal(ran.planted, undefined)
})

void t.test('imports that a filter makes later are checked, too', async (t) => {
  delete ran.planted
  const folder = written(t, {
    'own.mjs': `export const later = () => import('./writable.mjs')
      globalThis.later = later
      ${filter}`,
    'writable.mjs': planted('later'),
  })
  chmodSync(join(folder, 'writable.mjs'), 0o666)
  t.equal(await mistakesIn(join(folder, 'own.mjs')), 'none')
  const { later } = globalThis as unknown as { readonly later: () => Promise<unknown> }
  await t.rejects(later(), /not trusted/)
  t.equal(ran.planted, undefined)
})

void t.test('trusted modules and JSON files are imported', async (t) => {
  delete ran.planted
  const folder = written(t, {
    'own.mjs': `import { value } from './dep.mjs'
      import { join } from 'node:path'
      import data from './data.json' with { type: 'json' }
      ${filter}`,
    'dep.mjs': `export * from './deeper.ts'`,
    'deeper.ts': `export const value: string = 'leave'`,
    'data.json': '{}',
  })
  t.equal(await mistakesIn(join(folder, 'own.mjs')), 'none')
})
