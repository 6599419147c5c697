import t from 'tap'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Archive } from '../../../src/cli/inspect/archive.ts'

void t.test('text that looks like a secret is redacted', (t) => {
  const secrets = [
    'Authorization: Bearer an-opaque-token',
    'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl',
    'abcdef.0123456789abcdef',
    'https://user:hunter22@cloud',
    '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----',
  ]
  const archive = new Archive()
  archive.add('a.txt', secrets.join('\n'))
  archive.add('b.json', JSON.stringify(secrets))
  const file = join(t.testdir(), 'a.tar.gz')
  archive.write(file)
  const text = execFileSync('tar', ['-xzOf', file], { encoding: 'utf8' })
  t.match(text, /https:\/\/\[redacted\]cloud/)
  for (const part of ['opaque', 'eyJ', 'abcdef', 'hunter22', 'MHcC']) t.notMatch(text, part)
  t.end()
})

void t.test('an archive is bounded', (t) => {
  const archive = new Archive()
  const text = 'x'.repeat(5 << 20)
  for (let count = 0; count < 8; count += 1) archive.add(`${count}.txt`, text)
  t.throws(() => archive.add('last.txt', text), /the bundle is full/)
  const file = join(t.testdir(), 'a.tar.gz')
  archive.write(file)
  const first = execFileSync('tar', ['-xzOf', file, 'nodehub-bundle/0.txt'], {
    encoding: 'utf8',
    maxBuffer: 8 << 20,
  })
  t.ok(Buffer.byteLength(first) <= 4 << 20)
  t.match(first.slice(-40), /\[cut: this file was longer\]/)
  t.end()
})
