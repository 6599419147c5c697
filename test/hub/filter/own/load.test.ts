import t from 'tap'
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cursorOf } from '../../../../src/api/codec/cursor.ts'
import { loadFilters } from '../../../../src/hub/filter/own/load.ts'
import { inputsOf } from '../../../kit/inputs.ts'
import { FilterFolder, moduleOf } from '../../../kit/own-filter.ts'

const service = { group: '', version: 'v1', kind: 'Service' }
const named = { namespace: 'default', name: 'web', uid: '', resourceVersion: '' }
const object = { ...named, bytes: Buffer.from('{"metadata":{"name":"web"}}') }

/** The mistakes in a file, without its name. */
async function mistakesIn(file: string, taken: readonly string[] = []): Promise<readonly string[]> {
  const loaded = await loadFilters([file], taken)
  if (!('mistakes' in loaded)) throw new Error('there is nothing wrong with it')
  return loaded.mistakes.map((mistake) => mistake.replace(`${file}: `, ''))
}

async function namesIn(...files: string[]): Promise<readonly string[]> {
  const loaded = await loadFilters(files, [])
  if ('mistakes' in loaded) throw new Error(loaded.mistakes.join('\n'))
  return loaded.filters.map(({ name }) => name)
}

void t.test('modules give their filters in the order of the files', async (t) => {
  const folder = new FilterFolder(t)
  const first = folder.write('z.mjs', moduleOf('last-in-the-alphabet', `'leave'`))
  const second = folder.write('a.ts', `const n: string = 'b'\n${moduleOf('first', `'leave'`)}`)
  t.strictSame(await namesIn(first, second), ['last-in-the-alphabet', 'first'])
})

void t.test('a module may export a list, and other things beside', async (t) => {
  const file = new FilterFolder(t).write(
    'list.mjs',
    `${moduleOf('a', `'leave'`)}
     export const all = [{ ...filter, name: 'c' }, { ...filter, name: 'b' }]
     export const limit = 3
     export function forTests() {}`,
  )
  t.strictSame(await namesIn(file), ['c', 'b', 'a'], 'by the names of exports: all, filter')
})

void t.test('a filter that a module exports twice is one filter', async (t) => {
  const folder = new FilterFolder(t)
  const both = `${moduleOf('a', `'leave'`)}\nexport default filter`
  t.strictSame(await namesIn(folder.write('both.mjs', both)), ['a'])
})

void t.test('a CommonJS module is refused', async (t) => {
  const folder = new FilterFolder(t)
  const common = `${moduleOf('a', `'leave'`).replace('export ', '')}\nmodule.exports = filter`
  t.strictSame(await mistakesIn(folder.write('common.js', common)), [
    'is a CommonJS module: filters are exported by `export`',
  ])
  t.match(await mistakesIn(folder.write('common.cjs', common)), [/^is no module/])
})

void t.test('an API version is refused as a group', async (t) => {
  const inVersion = moduleOf('a', `'leave'`).replace(`group: ''`, `group: 'v1'`)
  t.match(await mistakesIn(new FilterFolder(t).write('a.mjs', inVersion)), [
    /rules\[0\]: group must be the name of an API group, empty for the core, not "v1"/,
  ])
})

void t.test('a filter’s revision follows from the text of its file', async (t) => {
  const folder = new FilterFolder(t)
  const versionOf = async (text: string) => {
    const loaded = await loadFilters([folder.write('f.mjs', text)], [])
    return 'filters' in loaded ? loaded.filters[0]?.revision : undefined
  }
  const one = await versionOf(moduleOf('a', `'leave'`))
  t.type(one, 'string')
  t.not(await versionOf(moduleOf('a', `'withhold'`)), one)
  t.equal(await versionOf(moduleOf('a', `'leave'`)), one)
})

void t.test('all mistakes are reported at once, with their place', async (t) => {
  const folder = new FilterFolder(t)
  const bad = folder.write(
    'bad.mjs',
    `export const one = { name: 'Not Good', rules: [{ component: ['x'], group: '', resources: ['*'], verbs: ['lst'] }], onError: 'ignore', needs: ['nodes'], create: 7 }
     export const two = { name: 'two', rules: [], onError: 'pass', needs: ['node'], awaits: ['pool'], create() {} }
     export const three = [5]`,
  )
  const none = folder.write('none.mjs', 'export const x = 1')
  const loaded = await loadFilters([bad, none, '/does/not/exist.mjs'], [])
  t.strictSame('mistakes' in loaded && loaded.mistakes, [
    `${bad}: one: name must be lower-case letters, digits and dashes, at most 63, not "Not Good"`,
    `${bad}: one: onError must be pass or withhold, not "ignore"`,
    `${bad}: one: create must be a function, not 7`,
    `${bad}: one.rules[0]: component is not known, did you mean components?`,
    `${bad}: one.rules[0]: components must be a list of at least one name in lower case, not absent`,
    `${bad}: one.rules[0]: resources must be a list of at least one name in lower case, not ["*"]`,
    `${bad}: one.rules[0]: verbs: "lst" is no verb, did you mean list?`,
    `${bad}: one: needs: "nodes" is not an input of filters, did you mean node?`,
    `${bad}: three[0]: is no filter definition`,
    `${bad}: two: rules must be a list of at least one rule, not []`,
    `${bad}: two: awaits: "pool" is not among its needs`,
    `${none}: exports no filter definition, only ["x"]`,
    `/does/not/exist.mjs: cannot be read: Error: ENOENT: no such file or directory, lstat '/does'`,
  ])
})

void t.test('a module that cannot be loaded is reported with the reason', async (t) => {
  const folder = new FilterFolder(t)
  t.match(await mistakesIn(folder.write('syntax.mjs', '\n\nexport const = 3')), [
    /^cannot be loaded: SyntaxError: .* \(run it with node to see where\)$/,
  ])
  t.match(await mistakesIn(folder.write('syntax.mts', '\n\nexport const a: = 3')), [
    /^cannot be loaded: SyntaxError: /,
  ])
  t.match(await mistakesIn(folder.write('throws.mjs', 'throw new Error("not today\\nnor ever")')), [
    /^cannot be loaded: Error: not today \(line 1\)$/,
  ])
  t.match(await mistakesIn(folder.write('empty.mjs', '')), [/no filter definition, nor anything/])
  const inner = `\n\n${moduleOf('a', `'leave'`, 'create({ pool }) {\n return pool.a.b }')}`
  t.match(await mistakesIn(folder.write('inner.mjs', inner)), [
    /create throws for a sample node: TypeError: .* \(line 11\)$/,
  ])
  t.match(await mistakesIn(folder.write('missing.mjs', 'import "../../../filter/own/other.mjs"')), [
    /^cannot be loaded: Error: Cannot find module/,
  ])
  t.match(await mistakesIn(folder.write('filter.sh', '')), [/is no module/])
})

void t.test('no two filters have the same name', async (t) => {
  const folder = new FilterFolder(t)
  const file = folder.write('f.mjs', moduleOf('masterservice', `'leave'`))
  t.strictSame(await mistakesIn(file, ['masterservice']), [
    'the name masterservice is already that of a filter of the hub',
  ])
  const other = folder.write('g.mjs', moduleOf('masterservice', `'withhold'`))
  t.match(await loadFilters([file, other], []), {
    mistakes: [`${other}: the name masterservice is already that of a filter of ${file}`],
  })
})

void t.test('a filter is tried on a sample object of a sample node', async (t) => {
  const folder = new FilterFolder(t)
  let at = 0
  const tried = (judge: string, rest?: string) =>
    mistakesIn(folder.write(`${at++}.mjs`, moduleOf('a', judge, rest)))
  t.match(await tried(`Promise.resolve('leave')`), [/the filter is asynchronous/])
  t.match(await tried(`Promise.reject(new Error('no'))`), [/the filter is asynchronous/])
  t.match(await tried(`undefined`), [
    /must return 'leave', 'withhold' or a list of edits, not absent/,
  ])
  t.match(await tried(`[{ op: 'delete', path: ['a'] }]`), [/must return/])
  t.match(await tried(`'leave'`, `create: () => 'leave'`), [
    /create must return a function or undefined/,
  ])
  t.match(await tried(`'leave'`, `create() { return this.node.name }`), [
    /create throws for a sample node: TypeError/,
  ])
  const fine = folder.write('fine.mjs', moduleOf('a', `service.value(['x']).y.z`))
  t.strictSame(await namesIn(fine), ['a'], 'throwing at such an object is no mistake')
})

void t.test('a module may use all that a filter can', async (t) => {
  const folder = new FilterFolder(t)
  const each = `[{ op: 'each', path: ['spec', 'ports'], change: () => 'remove' }]`
  t.strictSame(await namesIn(folder.write('each.mjs', moduleOf('a', each))), ['a'])
  t.match(await mistakesIn(folder.write('half.mjs', moduleOf('a', each.replace('change', 'x')))), [
    /must return/,
  ])
  const versioned = moduleOf('c', `'leave'`, `revision: '2'`)
  t.strictSame(await namesIn(folder.write('c.mjs', versioned)), ['c'])
})

void t.test('a module may export an object of a class', async (t) => {
  const file = new FilterFolder(t).write(
    'class.mjs',
    `${moduleOf('plain', `'leave'`).replace('export ', '')}
     class Withholding { name = 'a'; rules = filter.rules; onError = 'pass'; needs = []; #judgement = 'withhold'
       create() { return () => this.#judgement } }
     export const withholding = new Withholding()`,
  )
  const loaded = await loadFilters([file], [])
  const made = 'filters' in loaded && loaded.filters[0]?.create(inputsOf({}), () => undefined)
  t.equal(typeof made === 'function' && made(cursorOf('json', service, object)), 'withhold')
})

void t.test('whatever a module exports or throws, its mistake is described', async (t) => {
  const folder = new FilterFolder(t)
  let at = 0
  const tried = (text: string) => mistakesIn(folder.write(`${at++}.mjs`, text))
  t.match(await tried(moduleOf('a', `'leave'`, 'name: 1n')), [/name must be .*, not bigint/])
  t.match(await tried(moduleOf('a', '1n')), [/must return .*, not bigint/])
  t.match(await tried(`const c = {}\nc.c = c\n${moduleOf('a', `'leave'`, 'onError: c')}`), [
    /onError must be pass or withhold, not object/,
  ])
  t.match(await tried(moduleOf('a', `'leave'`, 'get name() { throw new Error("no") }')), [
    /cannot be read: Error: no/,
  ])
  const noText = 'Object.create(null)'
  t.match(await tried(moduleOf('a', `'leave'`, `create: () => { throw ${noText} }`)), [
    /create throws for a sample node: it throws a value that is no error: object/,
  ])
  t.match(await tried(`throw ${noText}`), [/cannot be loaded: it throws a value that is no error/])
})

void t.test('a file that others may change is not run', async (t) => {
  const folder = new FilterFolder(t)
  const text = `globalThis.wasRun = true\n${moduleOf('a', `'leave'`)}`
  const open = folder.write('open.mjs', text, 0o622)
  t.match(await mistakesIn(open), [/^is not trusted: .*open\.mjs may be written by others/])
  t.notOk('wasRun' in globalThis)
  const link = join(folder.path, 'link.mjs')
  symlinkSync(open, link)
  t.match(await mistakesIn(link), [/open\.mjs may be written by others/], 'nor through a link')
  const inside = new FilterFolder(t)
  const file = inside.write('f.mjs', moduleOf('a', `'leave'`))
  chmodSync(inside.path, 0o777)
  t.match(await mistakesIn(file), [
    /^is not trusted: .* may be written by others than its owner \(mode 777\)/,
  ])
  chmodSync(inside.path, 0o1777)
  t.strictSame(await namesIn(file), ['a'], 'in a folder such as /tmp no other user can exchange it')
})

void t.test('a file that declares filters is refused', async (t) => {
  const folder = new FilterFolder(t)
  for (const name of ['a.yaml', 'a.yml', 'a.json'])
    t.strictSame(await mistakesIn(folder.write(name, '- name: a\n  then: withhold\n')), [
      'is no module (.mjs, .mts, .js, .ts); filters are not declared in YAML any more',
    ])
})

void t.test('the mistakes reported of a file are limited', async (t) => {
  const many = 'export const all = Array.from({ length: 200 }, (_, n) => n)\nexport const one = {}'
  const mistakes = await mistakesIn(new FilterFolder(t).write('many.mjs', many))
  t.equal(mistakes.length, 101, 'not all of them are said')
  t.match(mistakes.at(-1), /and more$/)
})

void t.test('a folder, or a file above 1 MiB, is no filter', async (t) => {
  const folder = new FilterFolder(t)
  const large = folder.write('large.mjs', '')
  writeFileSync(large, Buffer.alloc(1024 * 1024 + 1, ' '))
  t.strictSame(await mistakesIn(large), ['is larger than 1 MiB'])
  t.match(await mistakesIn(folder.path), [/cannot be read|no module/])
})
