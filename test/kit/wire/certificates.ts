import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Teardown } from './wire.ts'

export interface Pair {
  readonly cert: string
  readonly key: string
}

/** One authority and what it issues, as PEM. */
export interface Authority {
  readonly ca: string
  server(names: string): Pair
  /** With `days` 0, one that ends as it is made. */
  client(name: string, days?: number): Pair
}

/** `undefined` where there is no openssl to make certificates with. */
export function authority(t: Teardown): Authority | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const at = (name: string): string => join(folder, name)
  const openssl = (...args: string[]): void =>
    void execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const makeKey = (file: string): void =>
    openssl('ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', file)
  const issue = (name: string, subject: string, extensions: string, days = 2): Pair => {
    makeKey(at(`${name}.key`))
    writeFileSync(at(`${name}.ext`), extensions)
    openssl('req', '-new', '-key', at(`${name}.key`), '-subj', subject, '-out', at(`${name}.csr`))
    // prettier-ignore
    openssl(
      'x509', '-req', '-in', at(`${name}.csr`), '-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial',
      '-days', String(days), '-extfile', at(`${name}.ext`), '-out', at(`${name}.crt`),
    )
    const read = (file: string): string => readFileSync(at(file), 'utf8')
    return { cert: read(`${name}.crt`), key: read(`${name}.key`) }
  }
  try {
    makeKey(at('ca.key'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  openssl(
    'req',
    '-x509',
    '-new',
    '-key',
    at('ca.key'),
    '-subj',
    '/CN=ca',
    '-days',
    '2',
    '-out',
    at('ca.crt'),
  )
  return {
    ca: readFileSync(at('ca.crt'), 'utf8'),
    server: (names) => issue('server', '/CN=server', `subjectAltName=${names}`),
    client: (name, days) => issue(name, `/CN=${name}`, 'extendedKeyUsage=clientAuth', days),
  }
}
