import t from 'tap'
import { join } from 'node:path'
import { TokenCache } from '../../../src/hub/cache/token-cache.ts'
import { storedKey } from '../../../src/base/stored-key.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'
import type { CachedToken } from '../../../src/hub/cache/token-cache.ts'
import { tokenResource, tokenName } from '../../../src/hub/store/token-name.ts'
import { openStore } from '../../../src/hub/store/log/open.ts'
import type { ObjectStore } from '../../../src/hub/store/store.ts'
import { replace } from '../../contracts/object-store.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const partition = { identity: nodeIdentity, representation: objectRepresentation('json').key }
const gvk = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

interface Given {
  readonly pod?: string
  readonly endsIn?: number
  readonly partition?: string
}

function tokenOf({ pod, endsIn = 3600, partition: aud = 'a' }: Given): CachedToken {
  const boundObject =
    pod === undefined ? undefined : { kind: 'Pod', name: pod, uid: `uid of ${pod}` }
  const asked = { serviceAccount: 'robot', audiences: [aud], expirationSeconds: 3600, boundObject }
  const name = tokenName(asked)
  const exp = Math.floor(Date.now() / 1000) + endsIn
  const status = { token: `${part({ alg: 'none' })}.${part({ exp })}.c2ln` }
  const bytes = Buffer.from(JSON.stringify({ status }))
  return {
    key: { partition, gvr: tokenResource, namespace: 'default', name },
    gvk,
    object: { namespace: 'default', name, uid: '', resourceVersion: '', bytes },
  }
}

async function opened(t: Test): Promise<ObjectStore> {
  const directory = rootFolder(t)
  const store = await openStore({
    directory: join(directory, 'cache'),
    sealingKey: storedKey(join(directory, 'store.key')),
    report: () => undefined,
  })
  t.teardown(() => store[Symbol.asyncDispose]())
  return store
}

interface Test {
  testdir(): string
  teardown(act: () => Promise<void>): void
}

/** By a process of its own: each looks first through what is there. */
const put = (store: ObjectStore, ...tokens: readonly CachedToken[]): Promise<unknown> => {
  const shelf = new TokenCache(store)
  return Promise.all(tokens.map(async (token) => shelf.put(token, 'json')))
}

const names = (store: ObjectStore): string[] =>
  store
    .names(partition, tokenResource)
    .map(({ name }) => name)
    .toSorted()

const namesOf = (...tokens: readonly CachedToken[]): string[] =>
  tokens.map(({ key }) => key.name).toSorted()

const podsOfNode = {
  partition,
  gvr: { group: '', version: 'v1', resource: 'pods' },
  labelSelector: '',
  fieldSelector: 'spec.nodeName=edge-1',
}
const head = {
  gvk: { group: '', version: 'v1', kind: 'PodList' },
  resourceVersion: '7',
  extra: '',
}
const podNamed = (name: string, uid = `uid of ${name}`): ApiObject => ({
  namespace: 'default',
  name,
  uid,
  resourceVersion: '5',
  bytes: Buffer.from('{}'),
})

void t.test('the token of a pod that is gone is forgotten', async (t) => {
  const store = await opened(t)
  const [there, gone, another] = [
    tokenOf({ pod: 'there' }),
    tokenOf({ pod: 'gone' }),
    tokenOf({ pod: 'another' }),
  ]
  const ofNoPod = tokenOf({})
  await put(store, there, gone, another, ofNoPod)
  await put(store, there)
  t.strictSame(
    names(store),
    namesOf(there, gone, another, ofNoPod),
    'it is not known which are gone',
  )
  await replace(store, podsOfNode, head, [podNamed('another', 'new'), podNamed('there')])
  await put(store, there)
  t.strictSame(names(store), namesOf(there, ofNoPod))
})

void t.test('a token that has expired is forgotten', async (t) => {
  const store = await opened(t)
  const [lasting, expired] = [tokenOf({}), tokenOf({ partition: 'b', endsIn: -1 })]
  await put(store, expired, lasting)
  await put(store, lasting)
  t.strictSame(names(store), namesOf(lasting))
})

void t.test('at most 1024 tokens are kept for one caller', async (t) => {
  const store = await opened(t)
  const tokens = Array.from({ length: 1024 }, (_, at) => tokenOf({ partition: String(at) }))
  const shelf = new TokenCache(store)
  await Promise.all(tokens.map(async (token) => shelf.put(token, 'json')))
  t.equal(shelf.put(tokenOf({ partition: 'one more' }), 'json'), undefined)
  t.ok(shelf.put(tokenOf({ partition: '7' }), 'json'), 'another for the same is')
  t.equal(names(store).length, 1024)
})
