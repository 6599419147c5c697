import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { StoredInputs, type ClusterInputs } from '../../../src/hub/wiring/kept-inputs.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

const node = { name: 'edge-1', labels: {}, annotations: {} }
const all: ClusterInputs = {
  node,
  pool: { ...node, name: 'hangzhou', type: 'Edge', hostNetwork: false },
  poolNodes: ['edge-1', 'edge-2'],
  topologies: { 'default/web': 'openyurt.io/nodepool' },
  serviceAddresses: ['10.96.0.1', 'fd00:10::1'],
  untold: [],
}
const nothing: ClusterInputs = {
  node: undefined,
  pool: undefined,
  poolNodes: undefined,
  topologies: undefined,
  serviceAddresses: undefined,
  untold: [],
}

/** Where these are kept. */
async function keptBy(t: Teardown, inputs: ClusterInputs): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'nodehub-kept-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'filter-inputs.json')
  await using kept = new StoredInputs(file, 'edge-1')
  await kept.keep(inputs)
  return file
}

/** What the next process knows of them. */
const readBy = (file: string, nodeName = 'edge-1'): ClusterInputs =>
  new StoredInputs(file, nodeName).latest

void t.test('the next process knows what this one knew, of the same node', async (t) => {
  const file = await keptBy(t, all)
  t.strictSame(readBy(file), all)
  t.strictSame(readBy(file, 'edge-2'), nothing)
})

void t.test('inputs known before the Node was ever read are known, too', async (t) => {
  const early = { ...nothing, topologies: all.topologies }
  t.strictSame(readBy(await keptBy(t, early)), early)
  t.strictSame(readBy(await keptBy(t, early), 'edge-2'), nothing)
})

void t.test('a damaged value costs no more than itself', async (t) => {
  const file = await keptBy(t, all)
  const kept = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  const damaged = {
    node: 7,
    pool: {},
    poolNodes: ['edge-1', 2],
    topologies: { 'default/web': 1 },
    serviceAddresses: null,
  }
  for (const [name, value] of Object.entries(damaged)) {
    writeFileSync(file, JSON.stringify({ ...kept, [name]: value }))
    t.strictSame(readBy(file), { ...all, [name]: undefined }, name)
  }
  writeFileSync(file, JSON.stringify({ ...kept, nodeName: undefined }))
  t.strictSame(readBy(file), all, 'an earlier version named the node in its Node alone')
  writeFileSync(file, '{"nodeName":"edge-1","topologies":')
  t.strictSame(readBy(file), nothing)
})
