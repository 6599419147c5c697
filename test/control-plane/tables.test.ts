import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { isObject, type Json, type JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { columnsOfBuiltin, type Column } from '../../src/api/kube/tables/columns.ts'
import { customColumns, defaultColumns } from '../../src/api/kube/tables/custom.ts'
import { columnDefinitions, rowOf } from '../../src/api/kube/tables/table.ts'
import { Client, objectOf, tableAccept } from '../kit/client.ts'
import {
  administrator,
  type ControlPlane,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { versionBefore } from '../kit/cluster/releases.ts'
import { until } from '../kit/until.ts'
import { objects, pumps, type Made } from './tables/objects.ts'

t.setTimeout(600_000)

const older = versionBefore('1.36')
const skip =
  noControlPlane() ??
  (older && `${older} shows some cells otherwise than 1.36, whose columns the hub has`) ??
  false

void t.test('Tables match the API server’s', { skip, timeout: 600_000 }, async (t) => {
  const plane = await startControlPlane(t)
  await makeAll(t, plane)
  const resources = await withColumns(plane)
  t.equal(resources.length, 14)

  await t.test('every column and cell of what a technician reads', async (t) => {
    for (const resource of resources) await compareTable(t, plane, resource)
  })
})

async function makeAll(t: Test, plane: ControlPlane): Promise<void> {
  await make(t, plane, {
    path: '/api/v1/namespaces/default/serviceaccounts',
    name: 'default',
    object: { metadata: { name: 'default' } },
  })
  for (const each of objects) await make(t, plane, each)
  await plane.admin.send('DELETE', '/api/v1/namespaces/default/pods/leaving')
  await until('the custom resource to be served', async () => {
    const { status } = await plane.admin.get('/apis/plant.example/v1/pumps')
    return status === 200
  })
  for (const each of pumps) await make(t, plane, each)
}

async function make(
  t: Test,
  { admin }: ControlPlane,
  { path, name, object, status }: Made,
): Promise<void> {
  const created = await admin.post(path, object)
  const made = created.status === 201 || created.status === 409
  t.ok(made, `${path}/${name} ${made ? '' : created.body.toString()}`)
  if (!status) return
  const patched = await admin.send(
    'PATCH',
    `${path}/${name}/status`,
    JSON.stringify({ status }),
    'application/merge-patch+json',
  )
  t.equal(
    patched.status,
    200,
    `${path}/${name} ${patched.status === 200 ? '' : patched.body.toString()}`,
  )
}

interface Resource {
  /** As `kubectl get` takes it. */
  readonly name: string
  readonly path: string
  readonly gvr: { readonly group: string; readonly version: string; readonly resource: string }
}

/** The built-in resources that have columns here, and the custom ones. */
const withColumns = async (plane: ControlPlane): Promise<Resource[]> =>
  (await listed(plane)).filter(({ gvr }) => columnsOfBuiltin(gvr) || gvr.group === 'plant.example')

/** The resources that can be listed, each group in its preferred version. */
async function listed({ admin }: ControlPlane): Promise<Resource[]> {
  const read = async (path: string): Promise<Json> =>
    JSON.parse((await admin.get(path)).body.toString()) as Json
  const groups = listAt(await read('/apis'), 'groups').map((group) =>
    textAt(group, 'preferredVersion', 'groupVersion'),
  )
  const found: Resource[] = []
  for (const root of ['/api/v1', ...groups.map((each) => `/apis/${each}`)]) {
    const [version = '', group = ''] = root.split('/').toReversed()
    const ofGroup = root === '/api/v1' ? '' : group
    for (const each of listAt(await read(root), 'resources')) {
      if (!listAt(each, 'verbs').includes('list')) continue
      // It has no versions, and is never recorded.
      if (textAt(each, 'name') === 'componentstatuses') continue
      const resource = textAt(each, 'name')
      found.push({
        name: ofGroup === '' ? resource : `${resource}.${version}.${ofGroup}`,
        path: `${root}/${resource}`,
        gvr: { group: ofGroup, version, resource },
      })
    }
  }
  return found
}

const age = /^(\d+[smhdy])+$|^<invalid>$/
const restarts = /\((\d+[smhdy])+ ago\)$/

/** Cells without what the clock changes. */
const maskedCell = (cell: Json): Json =>
  typeof cell === 'string' ? cell.replace(age, 'AGE').replace(restarts, '(AGE ago)') : cell

async function compareTable(
  t: Test,
  plane: ControlPlane,
  { path, gvr, name }: Resource,
): Promise<void> {
  const { certificate, key } = plane.credentials(administrator)
  const tls = {
    ca: readFileSync(plane.pki.ca.certificate, 'utf8'),
    cert: readFileSync(certificate, 'utf8'),
    key: readFileSync(key, 'utf8'),
  }
  const client = new Client({ url: plane.url, component: 'tester', tls })
  const table = objectOf(await client.withOptions({ accept: tableAccept }).get(path))
  const items = listAt(objectOf(await client.get(path)), 'items').filter(isObject)
  const columns = await columnsFor(client, gvr)
  const withoutText = (definitions: readonly Json[]): Json[] =>
    definitions.map((each) => ({ ...(each as JsonObject), description: '' }))
  t.strictSame(
    withoutText(columnDefinitions(columns)),
    withoutText(listAt(table, 'columnDefinitions')),
    `${name}: columns`,
  )
  const { kind } = objectOf(await client.get(path)) as { kind: string }
  const rows = items.map((item) =>
    rowOf(columns, { kind: kind.replace(/List$/, ''), ...item }, null),
  )
  const cells = (all: readonly Json[]): Json[] =>
    all
      .map((row) => [listAt(row, 'cells').map(maskedCell), valueAt(row, 'conditions') ?? null])
      .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  t.strictSame(cells(rows), cells(listAt(table, 'rows')), `${name}: cells`)
}

async function columnsFor(client: Client, gvr: Resource['gvr']): Promise<readonly Column[]> {
  const builtin = columnsOfBuiltin(gvr)
  if (builtin) return builtin
  const definition = await client.get(
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${gvr.resource}.${gvr.group}`,
  )
  return definition.status === 200
    ? customColumns(objectOf(definition), gvr.version)
    : defaultColumns
}
