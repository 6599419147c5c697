import { createPublicKey, verify } from 'node:crypto'
import t from 'tap'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { adminOf, clientOf, configMap, configMaps, eventsOf, pod, pods } from './client.ts'

const path = '/api/v1/namespaces/default/configmaps'
const plain = () => startSandbox({ tls: false })

function fill(sandbox: Sandbox, count: number): void {
  for (let i = 0; i < count; i++) sandbox.create(configMaps, configMap(`m${i}`))
}

void t.test('pages of a list are of one version, whatever is written in between', async (t) => {
  await using sandbox = await plain()
  fill(sandbox, 5)
  const client = adminOf(sandbox)
  const first = await client.json(`${path}?limit=2`)
  t.equal(first.metadata.remainingItemCount, 3)
  sandbox.delete(configMaps, 'm3', 'default')
  sandbox.create(configMaps, configMap('m2a'))
  const names: string[] = first.items.map(
    (item: { metadata: { name: string } }) => item.metadata.name,
  )
  for (let page = first; page.metadata.continue;) {
    page = await client.json(`${path}?limit=2&continue=${page.metadata.continue}`)
    t.equal(page.metadata.resourceVersion, first.metadata.resourceVersion)
    for (const item of page.items) names.push(item.metadata.name)
  }
  t.strictSame(names, ['m0', 'm1', 'm2', 'm3', 'm4'])
})

void t.test('an expired continue token gets one for the current version', async (t) => {
  await using sandbox = await plain()
  fill(sandbox, 3)
  const client = adminOf(sandbox)
  const { metadata } = await client.json(`${path}?limit=1`)
  sandbox.create(configMaps, configMap('m0a'))
  sandbox.compact()
  const refused = await client.json(`${path}?limit=1&continue=${metadata.continue}`)
  t.match(refused, { code: 410, reason: 'Expired' })
  const rest = await client.json(`${path}?continue=${refused.metadata.continue}`)
  t.strictSame(
    rest.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['m0a', 'm1', 'm2'],
  )
})

void t.test('an exact version is a snapshot, or 410', async (t) => {
  await using sandbox = await plain()
  fill(sandbox, 1)
  const { version } = sandbox
  fill2(sandbox)
  const exact = `${path}?resourceVersionMatch=Exact&resourceVersion=${version}`
  const then = await adminOf(sandbox).json(exact)
  t.equal(then.items.length, 1)
  t.equal(then.items[0].data.a, '1')
  t.equal(then.metadata.resourceVersion, version)
  sandbox.compact()
  t.match(await adminOf(sandbox).json(exact), {
    code: 410,
    message: 'The resourceVersion for the provided list is too old.',
  })
})

function fill2(sandbox: Sandbox): void {
  sandbox.update(configMaps, { ...configMap('m0'), data: { a: '2' } })
  sandbox.create(configMaps, configMap('later'))
}

void t.test('a list no older than a version waits for it', async (t) => {
  await using sandbox = await plain()
  const next = String(Number(sandbox.version) + 1)
  const waiting = adminOf(sandbox).json(`${path}?resourceVersion=${next}`)
  await sandbox.nextRequest()
  sandbox.create(configMaps, configMap('awaited'))
  t.equal((await waiting).items[0].metadata.name, 'awaited')
})

void t.test('a watch sends the events after its version in order', async (t) => {
  await using sandbox = await plain()
  fill(sandbox, 1)
  const { version } = sandbox
  fill2(sandbox)
  const answer = await adminOf(sandbox).open(`${path}?watch=1&resourceVersion=${version}`)
  const events = eventsOf(answer)
  t.match(await events.next(), {
    type: 'MODIFIED',
    object: { metadata: { name: 'm0' }, data: { a: '2' } },
  })
  t.match(await events.next(), { type: 'ADDED', object: { metadata: { name: 'later' } } })
  sandbox.delete(configMaps, 'later', 'default')
  const deleted = await events.next()
  t.match(deleted, { type: 'DELETED', object: { metadata: { resourceVersion: sandbox.version } } })
  t.equal(sandbox.watchCount(), 1)
  sandbox.endWatches()
  t.equal(await events.next(), undefined)
  await sandbox.untilWatches(0)
})

void t.test('bookmarks carry the version of other kinds of writes too', async (t) => {
  await using sandbox = await startSandbox({ tls: false, bookmarkMs: 20 })
  const before = sandbox.version
  const answer = await adminOf(sandbox).open(
    `${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${before}`,
  )
  sandbox.create(pods, pod('elsewhere'))
  const events = eventsOf(answer)
  // A slow machine may have sent bookmarks before the write.
  for (let bookmark = await events.next(), left = 50; ; bookmark = await events.next(), left--) {
    const { resourceVersion } = bookmark.object.metadata
    if (resourceVersion === before && left > 0) continue
    t.match(bookmark, { type: 'BOOKMARK', object: { kind: 'ConfigMap' } })
    t.equal(resourceVersion, sandbox.version)
    break
  }
  answer.destroy()
})

void t.test('a watch ends when its time is over', async (t) => {
  await using sandbox = await plain()
  const answer = await adminOf(sandbox).send(`${path}?watch=1&timeoutSeconds=1&resourceVersion=0`)
  t.equal(answer.status, 200)
  t.equal(answer.text, '')
})

void t.test('the history is bounded, and a version beyond it is gone', async (t) => {
  await using sandbox = await startSandbox({ tls: false, history: 3 })
  const { version } = sandbox
  fill(sandbox, 4)
  const events = eventsOf(await adminOf(sandbox).open(`${path}?watch=1&resourceVersion=${version}`))
  t.match(await events.next(), { type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  t.equal(await events.next(), undefined)
})

void t.test('a pod on a node goes once its kubelet deletes it', async (t) => {
  await using sandbox = await plain()
  sandbox.create(pods, pod('p'))
  const client = adminOf(sandbox)
  const ending = await client.json('/api/v1/namespaces/default/pods/p', { method: 'DELETE' })
  t.equal(ending.metadata.deletionGracePeriodSeconds, 30)
  t.ok(sandbox.get(pods, 'p', 'default'))
  await client.send('/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0', { method: 'DELETE' })
  t.equal(sandbox.get(pods, 'p', 'default'), undefined)
})

void t.test('an object with finalizers goes when the last is removed', async (t) => {
  await using sandbox = await plain()
  const held = configMap('held')
  const metadata = { ...held.metadata, finalizers: ['example.com/hold'] }
  sandbox.create(configMaps, { ...held, metadata })
  const left = sandbox.delete(configMaps, 'held', 'default')
  t.ok(left.metadata['deletionTimestamp'])
  t.ok(sandbox.get(configMaps, 'held', 'default'))
  sandbox.update(configMaps, held)
  t.equal(sandbox.get(configMaps, 'held', 'default'), undefined)
})

void t.test('clients with a certificate, token or nothing are identified', async (t) => {
  await using sandbox = await startSandbox()
  const review = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' }),
  }
  const at = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const node = clientOf(
    sandbox.url,
    sandbox.caCertificate,
    await sandbox.clientCertificate('system:node:a', ['system:nodes']),
  )
  const byCertificate = await node.json(at, review)
  t.match(byCertificate.status.userInfo, {
    username: 'system:node:a',
    groups: ['system:nodes', 'system:authenticated'],
  })
  t.equal(sandbox.requests.at(-1)?.clientCertificate, 'system:node:a')

  const nobody = clientOf(sandbox.url, sandbox.caCertificate)
  t.equal((await nobody.send(at, review)).status, 401)
  const token = sandbox.token({ name: 'someone', groups: ['some'] })
  const withToken = { ...review, headers: { ...review.headers, Authorization: `Bearer ${token}` } }
  t.equal((await nobody.json(at, withToken)).status.userInfo.username, 'someone')
  t.equal(sandbox.requests.at(-1)?.clientCertificate, undefined)
  // A certificate wins over a token.
  t.equal((await node.json(at, withToken)).status.userInfo.username, 'system:node:a')
  sandbox.revoke(token)
  t.equal((await nobody.send(at, withToken)).status, 401)
})

void t.test('a service account token can be verified, used, and lives with its pod', async (t) => {
  await using sandbox = await startSandbox()
  const accounts = { group: '', version: 'v1', resource: 'serviceaccounts' }
  sandbox.create(accounts, { metadata: { name: 'app', namespace: 'default' } })
  const { metadata } = sandbox.create(pods, pod('p'))
  const client = adminOf(sandbox)
  const answer = await client.json('/api/v1/namespaces/default/serviceaccounts/app/token', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      spec: {
        expirationSeconds: 600,
        boundObjectRef: { kind: 'Pod', name: 'p', uid: metadata.uid },
      },
    }),
  })
  const [head, body, signature] = String(answer.status.token).split('.')
  const { keys } = await client.json('/openid/v1/jwks')
  const key = createPublicKey({ key: keys[0], format: 'jwk' })
  t.ok(
    verify(
      'sha256',
      Buffer.from(`${head}.${body}`),
      { key, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature ?? '', 'base64url'),
    ),
  )
  const claims = JSON.parse(Buffer.from(body ?? '', 'base64url').toString())
  t.match(claims, {
    sub: 'system:serviceaccount:default:app',
    'kubernetes.io': { pod: { name: 'p', uid: metadata.uid } },
  })
  t.equal(claims.exp - claims.iat, 600)
  const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })
  const nobody = clientOf(sandbox.url, sandbox.caCertificate)
  t.equal((await nobody.send(path, bearer(answer.status.token))).status, 200)
  t.equal(sandbox.requests.at(-1)?.user?.name, 'system:serviceaccount:default:app')
  t.equal((await nobody.send(path, bearer(`${head}.${body}.AAAA`))).status, 401)
})

void t.test('a server that lags begins no watch with the most recent state', async (t) => {
  await using sandbox = await startSandbox({ tls: false, freshnessMs: 20 })
  fill(sandbox, 3)
  await using behind = await sandbox.lag(2)
  const initial = `${path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
  const answer = await fetch(`${behind.url}${initial}`)
  t.equal(answer.status, 504)
})

void t.test('a deleted pod is in lists of older versions', async (t) => {
  await using sandbox = await plain()
  const { metadata } = sandbox.create(pods, pod('a'))
  const before = sandbox.version
  sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
  const { items } = await adminOf(sandbox).json(
    `/api/v1/pods?resourceVersion=${before}&resourceVersionMatch=Exact`,
  )
  t.strictSame(
    items.map((item: { metadata: { resourceVersion: string } }) => item.metadata.resourceVersion),
    [metadata.resourceVersion],
  )
})

void t.test('a server that lags serves old versions, and 504 for newer', async (t) => {
  await using sandbox = await startSandbox({ tls: false, freshnessMs: 1 })
  fill(sandbox, 3)
  await using behind = await sandbox.lag(2)
  const client = clientOf(behind.url)
  t.equal((await client.json(path)).items.length, 3, 'the most recent it asks for')
  const listed = await client.json(`${path}?resourceVersion=0`)
  t.equal(listed.items.length, 1)
  t.equal(listed.metadata.resourceVersion, String(Number(sandbox.version) - 2))
  t.match(await client.json(`${path}?resourceVersion=${sandbox.version}`), {
    code: 504,
    reason: 'Timeout',
  })
  const events = eventsOf(
    await client.open(`${path}?watch=1&resourceVersion=${listed.metadata.resourceVersion}`),
  )
  fill2(sandbox)
  t.match(await events.next(), { type: 'ADDED', object: { metadata: { name: 'm1' } } })
})

void t.test('a custom resource is served while its CRD exists', async (t) => {
  await using sandbox = await plain()
  const definitions = {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    resource: 'customresourcedefinitions',
  }
  const client = adminOf(sandbox)
  const pumps = '/apis/plant.example.com/v1/pumps'
  t.equal((await client.send(pumps)).status, 404)
  sandbox.create(definitions, {
    metadata: { name: 'pumps.plant.example.com' },
    spec: {
      group: 'plant.example.com',
      scope: 'Cluster',
      names: { plural: 'pumps', kind: 'Pump' },
      versions: [{ name: 'v1', served: true, storage: true }],
    },
  })
  const made = await client.send(pumps, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      apiVersion: 'plant.example.com/v1',
      kind: 'Pump',
      metadata: { name: 'p' },
      rpm: 1,
    }),
  })
  t.equal(made.status, 201)
  const onlyProtobuf = { headers: { Accept: 'application/vnd.kubernetes.protobuf' } }
  t.equal((await client.send(pumps, onlyProtobuf)).status, 406)
  sandbox.delete(definitions, 'pumps.plant.example.com')
  t.equal((await client.send(pumps)).status, 404)
})
