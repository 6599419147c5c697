import { readFileSync } from 'node:fs'
import axe, { type Result } from 'axe-core'
import t, { type Test } from 'tap'
import { addCsiNode, kubeletOf, podWith, startUp } from '../kit/bootable.ts'
import { Browser, noBrowser, type Page } from '../kit/browser.ts'
import { pods, podsOfNode } from '../kit/cloud.ts'
import { mostWatchers } from '../../src/http/server/inspections.ts'
import { startJoinable } from '../kit/joinable.ts'
import { startCloud, startTestHub, type CloudServer, type TestHub } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'

t.setTimeout(300_000) // a browser that starts takes its time on a busy machine

interface Shown {
  readonly cloud: CloudServer
  readonly hub: TestHub
}

/** Of all tests: it takes most of the time to start, and its pages know nothing of each other. */
const browser = noBrowser === false ? await Browser.start(t) : undefined

/** Opens a page of this size until the test is over. */
async function open(t: Test, ...shown: Parameters<Browser['open']>): Promise<Page> {
  if (browser === undefined) throw new Error('no browser')
  const page = await browser.open(...shown)
  t.teardown(() => page.close())
  return page
}

const addressOf = (hub: TestHub): string => `http://127.0.0.1:${hub.hub.opsPort}/`

const tokenOf = (hub: TestHub): string => readFileSync(hub.inspectTokenFile, 'utf8')

const withToken = (hub: TestHub): string => `${addressOf(hub)}#token=${tokenOf(hub)}`

/** Another user than root, where the test runs as root. */
const another = process.getuid?.() === 0 ? 65_534 : undefined

async function start(t: Teardown): Promise<Shown> {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
  const hub = await startTestHub(t, { upstreams: [cloud], flags: ['--anonymous-loopback=node'] })
  await startUp(kubeletOf(hub))
  return { cloud, hub }
}

/**
 * The hub of most tests, which are in this order: those of a hub that is online, then of one that
 * has gone offline, then of one that was started again offline.
 */
const shared = noBrowser === false ? await start(t) : undefined

function sharedHub(): Shown {
  if (shared === undefined) throw new Error('no browser')
  return shared
}

const section = (id: string): string => `[data-section=${id}]`

const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement.id')

void t.test(
  'the page follows the hub through an outage and back',
  { skip: noBrowser },
  async (t) => {
    const { cloud, hub } = await start(t)
    const kubelet = kubeletOf(hub)
    const { resourceVersion } = await kubelet.list(podsOfNode)
    await kubelet.watch(`${podsOfNode}&watch=true&resourceVersion=${resourceVersion}`)
    const page = await open(t, withToken(hub))
    t.match(await page.shows('#state', /Online/), /^● Online since \d{4}-/)
    t.equal(await page.evaluate('location.hash'), '', 'the token is not left in the address')
    t.match(await page.shows(section('upstreams'), /healthy/), cloud.url)
    await page.shows(section('watches'), /kubelet\s+pods/)
    await page.shows(section('collections'), /pods[^\n]*watched/)
    await page.shows(section('boot'), /default\/press\s.*missing\s+secrets default\/password/)
    await page.shows(section('filters'), /masterservice/)
    await page.shows(section('certificates'), /TLS proxy/)
    await page.shows(section('pods'), /--host-network-propagation is off; .*pool/)

    await cloud.unplug()
    await hub.offline()
    await kubelet.list(podsOfNode)
    t.match(await page.shows('#state', /Offline/), /answering from the cache since/)
    t.match(await page.shows(section('upstreams'), /unhealthy/), /ago|s$|\d+ s/m)
    await page.shows(section('served'), /cache 200/)
    await page.shows(section('log'), /offline: answering from the cache/)

    await cloud.plug()
    await hub.online()
    await page.shows('#state', /^● Online/)

    await hub.stop()
    await page.shows('#state', /does not answer; what is shown is of/)
  },
)

void t.test('it shows a refused watch and a denied CSR', { skip: noBrowser }, async (t) => {
  const joinable = await startJoinable(t)
  joinable.verdict = 'deny'
  const hub = await startTestHub(t, {
    upstreams: [joinable.cloud],
    flags: ['--hub-cert-signer=kubernetes.io/kubelet-serving'],
  })
  await hub.logged('the hub obtains no serving certificate')
  const watchers = await Promise.all(
    Array.from({ length: mostWatchers }, () =>
      fetch(`${addressOf(hub)}inspect/status?watch=true`, {
        headers: { Authorization: `Bearer ${tokenOf(hub)}` },
      }),
    ),
  )
  t.ok(watchers.every(({ ok }) => ok))
  const page = await open(t, withToken(hub))
  await page.shows('#state', /^inspections are watched by 8 clients already/)
  for (const { body } of watchers) await body?.cancel()
  await page.shows(section('certificates'), /no new one is obtained: .* was denied: ByTest/)
  t.match(await page.text('#state'), /^● Online/)
})

/** Shows these members of the status document in place of the hub's, until they change there. */
const show = (page: Page, members: Readonly<Record<string, unknown>>): Promise<void> =>
  page.evaluate(`take(${JSON.stringify(`data: ${JSON.stringify(members)}`)})`)

void t.test(
  'a time that is none, or too far, is not counted in days',
  { skip: noBrowser },
  async (t) => {
    const { hub } = sharedHub()
    const page = await open(t, withToken(hub))
    await page.shows(section('certificates'), /TLS proxy/)
    const inYears = (years: number): string =>
      new Date(Date.now() + years * 365.25 * 86_400_000).toISOString()
    const ends = [
      ['9999-12-31T23:59:59Z', 'in over 100 years'],
      [inYears(10), 'in 10 years'],
      [inYears(1), 'in 365 days'],
      [inYears(-3), '3 years'],
      ['1970-01-01T00:00:00Z', 'unknown'],
      ['0001-01-01T00:00:00Z', 'unknown'],
      ['no time', 'unknown'],
    ] as const
    for (const [notAfter, said] of ends) {
      await show(page, { certificates: [{ use: 'serving', names: 'of a test', notAfter }] })
      t.equal(await page.text(`${section('certificates')} td time`), said, notAfter)
    }
  },
)

/** The parts of names, between separators, that are on more than one line. */
const broken = `[...document.querySelectorAll('td.name')]
  .filter((cell) => cell.checkVisibility())
  .flatMap((cell) => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
    const found = []
    while (texts.nextNode()) {
      for (const { 0: part, index } of texts.currentNode.data.matchAll(/[^\\s/.,:;=&_-]+/g)) {
        const range = document.createRange()
        range.setStart(texts.currentNode, index)
        range.setEnd(texts.currentNode, index + part.length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) found.push(part)
      }
    }
    return found
  })`

void t.test('no name is broken within a word', { skip: noBrowser }, async (t) => {
  const { hub } = sharedHub()
  const watch = {
    component: 'a-controller-of-the-plant-with-a-name',
    resource: 'validatingadmissionpolicies.admissionregistration.k8s.io',
    namespace: '',
    labelSelector:
      'app.kubernetes.io/managed-by=installer,service.kubernetes.io/service-proxy-name',
    fieldSelector: '',
    source: 'cache',
    open: 1,
    since: '2026-11-21T12:00:00Z',
  }
  for (const width of [1280, 800, 360]) {
    const page = await open(t, withToken(hub), { width, height: 800 })
    await page.shows(section('collections'), /pods/)
    await show(page, { watches: { items: [watch], omitted: 0 } })
    await page.shows(section('watches'), /a-controller/)
    t.strictSame(await page.evaluate(broken), [], `${width} wide`)
  }
})

void t.test('the keyboard alone operates it', { skip: noBrowser }, async (t) => {
  const { hub } = sharedHub()
  const page = await open(t, withToken(hub))
  await page.shows(section('filters'), /masterservice/)
  await page.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'skip')
  await page.press('/', '/')
  t.equal(await focused(page), 'filter')
  await page.type('masterservice')
  t.match(await page.text(`${section('filters')} tbody`), /^masterservice[^\n]*$/)
  await page.press('Escape')
  t.match(await page.text(`${section('filters')} tbody`), /\n/)
})

void t.test(
  'no script but its own runs, and no text becomes HTML',
  { skip: noBrowser },
  async (t) => {
    const { hub } = sharedHub()
    const page = await open(t, withToken(hub))
    await page.shows('#state', /Online/)
    await t.rejects(page.evaluate(`document.body.innerHTML = '<b>bold</b>'`), /TrustedHTML/)
    const blocked = await page.evaluate(`new Promise((resolve) => {
    document.addEventListener('securitypolicyviolation', (event) => resolve(event.blockedURI))
    const script = document.createElement('img')
    script.src = 'http://127.0.0.2/'
    document.body.append(script)
  })`)
    t.match(blocked, /^http:\/\/127\.0\.0\.2/)
  },
)

/** Elements whose content is cut off, or has to be scrolled sideways. */
const cutOff = `[...document.querySelectorAll('html, body *')]
  .filter((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth)
  // What screen readers read, and nobody sees.
  .filter((each) => !each.closest('thead'))
  .map((each) => each.outerHTML.slice(0, 200))`

/** Fails where an element overflows its container on a phone. */
async function fitsPhone(
  t: Test,
  hub: TestHub,
  shown: readonly [selector: string, pattern: RegExp],
): Promise<void> {
  const page = await open(t, withToken(hub), { width: 360, height: 780 })
  await page.shows(...shown)
  t.strictSame(await page.evaluate(cutOff), [])
  await page.evaluate(`document.querySelector('#sign-in').hidden = false`)
  t.strictSame(await page.evaluate(cutOff), [], 'with the form')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
}

void t.test('on a phone no element overflows its container', { skip: noBrowser }, (t) =>
  fitsPhone(t, sharedHub().hub, [section('boot'), /1 of 1 pods would not come back/]),
)

const looks = [
  { width: 1280, dark: false },
  { width: 360, dark: true },
] as const

/** Checks the page wide and light, narrow and dark. */
async function isAccessible(
  t: Test,
  opened: (look: (typeof looks)[number]) => Promise<Page> | undefined,
  shown: readonly [selector: string, pattern: RegExp],
): Promise<void> {
  for (const look of looks) {
    const page = await opened(look)
    if (page === undefined) throw new Error('no browser')
    await page.shows(...shown)
    await page.evaluate(`${axe.source}; undefined`)
    const found = await page.evaluate<Result[]>('axe.run().then(({ violations }) => violations)')
    const nodesOf = ({ nodes }: Result): string => nodes.map(({ html }) => html).join(' ')
    t.strictSame(
      found.map((each) => `${each.id}: ${nodesOf(each)}`),
      [],
      `${look.width} wide`,
    )
    await page.close()
  }
}

void t.test('axe finds no violation', { skip: noBrowser }, (t) =>
  isAccessible(t, (look) => browser?.open(withToken(sharedHub().hub), look), [
    section('log'),
    /online/,
  ]),
)

void t.test('a user other than root has to type the token', { skip: noBrowser }, async (t) => {
  const { hub } = sharedHub()
  const theirs = await Browser.start(t, another)
  const guessing = (look = {}) => theirs.open(`${addressOf(hub)}#token=guessed`, look)
  const page = await guessing()
  await page.shows('#sign-in', /This token is not accepted/)
  t.equal(await focused(page), 'token')
  t.equal(await page.text('main'), '', 'nothing of the hub is shown')
  await isAccessible(t, guessing, ['#sign-in', /This token is not accepted/])
  await page.evaluate(`document.querySelector('#token').focus()`)
  await page.evaluate(`globalThis.said = []
      new MutationObserver(() => said.push(document.querySelector('#state').textContent))
        .observe(document.querySelector('#state'), { childList: true }); undefined`)
  await page.type(tokenOf(hub))
  await page.press('Enter', '\r')
  await page.shows('#state', /^● Online/)
  const said = await page.evaluate<string[]>('said')
  t.strictSame(
    said.filter((text) => !text.startsWith('● Online')),
    ['Connecting to the hub…'],
    'nothing else is read out',
  )
  t.ok(await page.evaluate(`document.querySelector('#sign-in').hidden`))
})

void t.test(
  'it shows what is saturated, refused and when, with remedies',
  { skip: noBrowser },
  async (t) => {
    const { cloud, hub } = sharedHub()
    const page = await open(t, withToken(hub))
    await page.shows('#freshness', /\d+\.\d MiB of \d+\.\d [MG]iB memory/)
    const partial = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }
    await hub.as('kubectl', partial).get('/api/v1/pods')
    const listed = await page.shows(section('collections'), /metadata \(JSON\)/)
    t.notMatch(listed, 'metadata;v1')
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-9'
    t.equal((await kubeletOf(hub).get(lease)).status, 404)
    await page.shows(section('served'), /get leases[^\n]*cloud 404/)
    const refused = `${section('served')} td .warn`
    t.equal(await page.text(refused), '', 'a lease that is yet to be created is no refusal')

    await cloud.unplug()
    await hub.offline()
    t.equal((await hub.as('kube-proxy').get('/api/v1/endpoints')).status, 503)
    await page.shows(refused, /^1$/)
    await page.shows(section('served'), /inspect requests --code/)
    await page.shows(
      section('boot'),
      /the node\s.*refused\s+endpoints\s.*restart the component while online/,
    )
    await page.shows(section('upstreams'), /no API server listens at that port. .*curl -k http/)
    const hour = await page.shows(section('hour'), /offline in \d+ of \d+ min/)
    t.match(hour, /\d+ cloud\s+\d+ cache\s+\d+ hub/)
    t.match(hour, /\d+ answers\s+p99\s+at most [\d.]+ m?s/)
    const bars = (name: string): Promise<number> =>
      page.evaluate(`document.querySelectorAll('[data-section=hour] rect.${name}').length`)
    for (const each of ['cloud', 'hub', 'refused', 'offline', 'size']) t.ok(await bars(each), each)
    await page.evaluate(`document.querySelector('summary').focus()`)
    await page.press('Enter', '\r')
    await page.shows(section('hour'), /\d\d:\d\d\s+○ offline\s+\d/)
  },
)

void t.test('it says what to do about each thing that is amiss', { skip: noBrowser }, async (t) => {
  const { hub } = sharedHub()
  for (const width of [1280, 360]) {
    const page = await open(t, withToken(hub), { width, height: 800 })
    await page.shows(section('load'), /Memory/)
    const seats = { current: 3, most: 240, limit: 250 }
    const on = { namespace: 'default', network: 'propagated', ports: [] }
    const clash = { port: 80, protocol: 'TCP', with: 'the kubelet' }
    const request = { component: 'kubectl', caller: 'node', verb: 'connect', resource: 'pods' }
    const items = [{ ...request, name: 'press', since: '2026-11-21T12:00:00Z', bytes: 2048 }]
    await show(page, {
      saturation: { seats },
      underWay: { items, omitted: 3 },
      checks: [{ name: 'store', required: true, fault: 'it is full', remedy: 'df -h' }],
      notes: ['[ ]config unusable since noon, the last good one is in force: no', '[ ]leader: x'],
      hostNetwork: {
        mode: 'on',
        hostNetworkPool: true,
        pods: { items: [{ ...on, name: 'web', clashes: [clash] }], omitted: 0 },
      },
    })
    await page.shows(section('load'), /further ones get 429: .*--max-requests[^]*▲ 240, 96 %/)
    const checks = await page.shows(section('upstreams'), /▲ store: it is full\s+→ df -h/)
    t.match(checks, /config unusable[^\n]*\s+→ Correct it: it is read again/)
    t.match(await page.text(section('underWay')), /kubectl[^]*connect pods press[^]*2.0 KiB/)
    t.match(await page.text(section('underWay')), /and 3 more/)
    t.match(await page.text(section('pods')), /▲ 1 share a port of the host[^]*▲ 80\/TCP/)
    t.strictSame(await page.evaluate(cutOff), [], `${width} wide`)
  }
})

void t.test(
  'offline it fits a phone, and axe finds no violation',
  { skip: noBrowser },
  async (t) => {
    const { hub } = sharedHub()
    await fitsPhone(t, hub, [section('upstreams'), /LAST FAILURES|ECONNREFUSED|connect/])
    const opened = (look: object) => browser?.open(withToken(hub), look)
    await isAccessible(t, opened, [section('upstreams'), /unhealthy/])
  },
)

void t.test(
  'after an offline restart it shows the stored state',
  { skip: noBrowser },
  async (t) => {
    const { hub } = sharedHub()
    await hub.restart()
    await hub.offline()
    const page = await open(t, withToken(hub))
    await page.shows('#state', /^○ Offline/)
    await page.shows(section('collections'), /pods[^\n]*stored/)
    t.match(
      await page.shows(section('boot'), /1 of 1 pods would not come back/),
      /default\/press\s.*missing\s+secrets default\/password/,
    )
    const opened = (look: object) => browser?.open(withToken(hub), look)
    await isAccessible(t, opened, [section('collections'), /stored/])
  },
)
