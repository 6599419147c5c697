import t from 'tap'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { configSchema, configSchemaFile } from '../../packaging/config-schema.ts'
import { manPage } from '../../packaging/man-page.ts'
import { reference } from '../../packaging/reference.ts'
import { settingsFromFile } from '../../src/config/raw-settings.ts'
import { options } from '../../src/config/options.ts'
import type { Option } from '../../src/config/option.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'

void t.test('the man page has every command with its flags', async (t) => {
  const sections = await reference()
  t.ok(sections.length > 20)
  const [, ...texts] = manPage.split(/^\.SS /m)
  t.equal(texts.length, sections.length)
  for (const [at, { name, own }] of sections.entries()) {
    t.ok(texts[at]?.startsWith(`${name.replaceAll('-', '\\-')}\n`), name)
    for (const flag of Object.keys(own))
      t.ok(texts[at]?.includes(`--${flag}`.replaceAll('-', '\\-')), `${name} --${flag}`)
  }
})

for (const [program, ...flags] of [
  ['groff', '-man', '-ww', '-z'],
  ['mandoc', '-T', 'lint', '-W', 'warning'],
] as const) {
  const found = findBinaries([program])
  const skip = 'missing' in found && found.missing
  void t.test(`${program} has nothing to say of the man page`, { skip }, async (t) => {
    const said = execFileSync('sh', ['-c', `${[program, ...flags].join(' ')} 2>&1`], {
      input: manPage,
      encoding: 'utf8',
    })
    t.equal(said, '')
  })
}

interface Schema {
  readonly type?: unknown
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
}

const { properties } = configSchema() as { readonly properties: Record<string, Schema> }

void t.test('the schema has the keys that the file takes, and their values', async (t) => {
  for (const [key, schema] of Object.entries(properties)) {
    const value = schema.enum?.[0] ?? schema.maximum ?? (schema.type === 'boolean' ? true : '1')
    const { mistakes, settings } = settingsFromFile('f', JSON.stringify({ [key]: value }), options)
    t.strictSame([mistakes, settings.size], [[], 1], key)
  }
  for (const [name, { type }] of Object.entries<Option<unknown>>(options)) {
    const { enum: words = [], minimum, maximum } = properties[name] ?? {}
    const ends = minimum === undefined ? [] : [minimum, maximum]
    for (const value of [...words, ...ends]) t.notHas(type.parse(String(value)), 'wrong', name)
    if (maximum !== undefined) t.ok('wrong' in type.parse(String(maximum + 1)), name)
  }
  const outside = Object.keys(options).filter((name) => !Object.hasOwn(properties, name))
  t.strictSame(outside, ['config', 'version'])
})

void t.test('the packaged settings are by the schema, and name it to editors', async (t) => {
  const settings = readFileSync('packaging/config.yaml', 'utf8')
  t.ok(settings.startsWith(`# yaml-language-server: $schema=${configSchemaFile}\n`))
  for (const key of Object.keys(parse(settings) as object)) t.ok(properties[key], key)
})
