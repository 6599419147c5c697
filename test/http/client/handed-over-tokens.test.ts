import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseBootstrapToken, type BootstrapToken } from '../../../src/config/bootstrap.ts'
import { HandedOverTokens } from '../../../src/http/client/handed-over-tokens.ts'

function tokenOf(text: string): BootstrapToken {
  const token = parseBootstrapToken(text)
  if (!token) throw new Error(`${text} is no token`)
  return token
}

const [first, second, third] = ['aaaaaa', 'bbbbbb', 'cccccc'].map((id) =>
  tokenOf(`${id}.0123456789abcdef`),
) as [BootstrapToken, BootstrapToken, BootstrapToken]

const idsIn = (tokens: HandedOverTokens): string[] => tokens.all().map(({ id }) => id)

void t.test('a token is kept until another one is proven', async (t) => {
  const file = join(t.testdir(), 'token')
  const tokens = new HandedOverTokens(file)
  t.strictSame(idsIn(tokens), [])
  for (const each of [first, second]) await tokens.add(each)
  t.strictSame(idsIn(new HandedOverTokens(file)), ['bbbbbb', 'aaaaaa'], 'also by a later process')
  t.equal(statSync(file).mode & 0o777, 0o600)
  await tokens.proven(second)
  t.strictSame(idsIn(tokens), ['bbbbbb'])
  t.equal(readFileSync(file, 'utf8'), 'bbbbbb.0123456789abcdef\n')
})

void t.test('a token handed over during a trial of another is not lost', async (t) => {
  const tokens = new HandedOverTokens(join(t.testdir(), 'token'))
  for (const each of [first, second, third]) await tokens.add(each)
  t.strictSame(idsIn(tokens), ['cccccc', 'aaaaaa'])
  await tokens.proven(second)
  t.strictSame(idsIn(tokens), ['cccccc', 'bbbbbb'], 'the proven one is the good one behind it')
})
