import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Broadcast } from '../../../src/base/broadcast.ts'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import type { ServingCredentials } from '../../../src/http/server/listener.ts'
import {
  DynamicServingCredentials,
  type DynamicServingOptions,
} from '../../../src/http/server/dynamic-serving-credentials.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const authority = await CertificateAuthority.create('ca')

/** The part, and the promise of its next change. */
async function serving(
  t: Teardown,
  options: Partial<DynamicServingOptions> & { readonly folder: string },
) {
  const replaced = new Broadcast<[ServingCredentials]>()
  const part = await DynamicServingCredentials.open({
    names: ['127.0.0.1'],
    given: undefined,
    clientCa: undefined,
    upstreamCa: undefined,
    onReplaced: (credentials) => replaced.announce(credentials),
    onAuthorityMade: () => undefined,
    onUnusable: () => undefined,
    onFailure: () => undefined,
    ...options,
  })
  t.teardown(() => part[Symbol.dispose]())
  const changed = (): Promise<ServingCredentials> =>
    new Promise((resolve) => replaced.listen(resolve))
  return { part, changed }
}

void t.test('the CA of the API servers is the default client CA', async (t) => {
  const { part, changed } = await serving(t, { folder: rootFolder(t), upstreamCa: 'first' })
  t.equal(part.current.clientCa, 'first')
  const change = changed()
  part.replaceUpstreamCa('second')
  t.equal((await change).clientCa, 'second')
})

void t.test('without an upstream CA there is no client CA', async (t) => {
  t.notOk('clientCa' in (await serving(t, { folder: rootFolder(t) })).part.current)
})

void t.test('a certificate and an authority that are given are used, and read again', async (t) => {
  const folder = rootFolder(t)
  const file = (name: string): string => join(folder, name)
  const write = async (): Promise<string> => {
    const { certificate, key } = await authority.issue({ commonName: 'given', usage: 'server' })
    writeFileSync(file('key'), key)
    writeFileSync(file('certificate'), certificate)
    return certificate
  }
  const first = await write()
  writeFileSync(file('ca'), authority.certificate)
  const { part, changed } = await serving(t, {
    folder,
    given: { certificate: file('certificate'), key: file('key') },
    clientCa: file('ca'),
    upstreamCa: 'not this one',
  })
  t.match(part.current, { certificate: first, clientCa: authority.certificate })
  const change = changed()
  const second = await write()
  part.check()
  t.equal((await change).certificate, second)
})

void t.test('files that cannot be used do not start', async (t) => {
  const folder = t.testdir({ certificate: 'none', key: 'none' })
  const given = { certificate: join(folder, 'certificate'), key: join(folder, 'key') }
  await t.rejects(serving(t, { folder, given }), /not a certificate/)
})
