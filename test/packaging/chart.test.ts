import t from 'tap'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { clusterPackages } from '../../packaging/cluster/chart.ts'
import { ownVersion } from '../../src/base/own-version.ts'
import type { Installation } from '../../src/cluster/install/installation.ts'
import { clusterManifests } from '../../src/cluster/install/manifests.ts'
import { nodeInstallers } from '../../src/cluster/install/nodes.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'

t.setTimeout(300_000)

const folder = 'packaging/cluster'
const chart = join(folder, 'chart')

const skipWithout = (name: string): string | false => {
  const found = findBinaries([name])
  return 'missing' in found ? found.missing : false
}

/** Without a cluster, Helm takes the version that it was built with for the API server's. */
const forKubernetes = ['--kube-version', '1.36.0']

const run = (program: string, ...args: readonly string[]): string => {
  const found = findBinaries([program])
  if ('missing' in found) throw new Error(found.missing)
  return execFileSync(found.paths[program] ?? program, args, { encoding: 'utf8', stdio: 'pipe' })
}

interface ApiDocument {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

/** Objects by kind and name, as an API server would read them. */
const objects = (documents: readonly unknown[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    (JSON.parse(JSON.stringify(documents)) as readonly ApiDocument[]).map((each) => [
      `${each.kind} ${each.metadata.namespace ?? ''} ${each.metadata.name}`,
      each,
    ]),
  )

const parsed = (text: string): readonly unknown[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as unknown)
    .filter((document) => document !== null)

const usual: Installation = {
  name: 'nodehub-cluster',
  namespace: 'nodehub-system',
  image: `nodehub:${ownVersion()}`,
  podHostNetwork: false,
}

for (const [file, text] of Object.entries(clusterPackages())) {
  void t.test(`${file} matches the manifests`, async (t) =>
    t.equal(readFileSync(join(folder, file), 'utf8'), text, `node ${folder}/main.ts writes it`),
  )
}

/** The manifests, but for what is so on purpose: no namespace, and a definition that stays. */
const byHelm = (installation: Installation): Readonly<Record<string, unknown>> => {
  const { [`Namespace  ${installation.namespace}`]: _, ...all } = objects(
    clusterManifests(installation),
  )
  const name = 'CustomResourceDefinition  nodepools.apps.openyurt.io'
  const definition = all[name] as ApiDocument
  const metadata = { ...definition.metadata, annotations: { 'helm.sh/resource-policy': 'keep' } }
  return { ...all, [name]: { ...definition, metadata } }
}

void t.test(
  'the chart renders to the objects of nodehub manifests, whatever its values',
  { skip: skipWithout('helm') },
  async (t) => {
    const cases: readonly (readonly [Partial<Installation>, readonly string[]])[] = [
      [{}, []],
      [
        { namespace: 'elsewhere', image: 'r.example:5000/n@sha256:0' },
        ['image=r.example:5000/n@sha256:0'],
      ],
      [{}, ['admission=policies']],
      [{ podHostNetwork: true }, ['podHostNetwork=true']],
      [
        {
          apiServerCidrs: ['10.0.0.1/32', '10.0.0.2/32'],
          opsCidrs: ['fd00::/8'],
          clientCa: 'front-ca',
        },
        [
          'apiServerCidrs={10.0.0.1/32,10.0.0.2/32}',
          'opsCidrs={fd00::/8}',
          'clientCaConfigMap=front-ca',
        ],
      ],
    ]
    for (const [changes, set] of cases) {
      const installation = { ...usual, ...changes }
      const args = [
        '--namespace',
        installation.namespace,
        ...set.flatMap((each) => ['--set', each]),
      ]
      const rendered = run('helm', 'template', 'nodehub', chart, ...forKubernetes, ...args)
      t.strictSame(objects(parsed(rendered)), byHelm(installation), set.join(' '))
    }
    const nodes = { namespace: 'kube-system', image: usual.image }
    for (const [set, installation] of [
      [[], nodes],
      [
        ['nodes.namespace=edge', 'nodes.serverAddr=https://10.0.0.1:6443'],
        { ...nodes, namespace: 'edge', serverAddresses: 'https://10.0.0.1:6443' },
      ],
    ] as const) {
      const flags = ['nodes.enabled=true', ...set].flatMap((each) => ['--set', each])
      const args = ['--namespace', usual.namespace, ...flags]
      const rendered = run('helm', 'template', 'nodehub', chart, ...forKubernetes, ...args)
      t.strictSame(objects(parsed(rendered)), {
        ...byHelm(usual),
        ...objects(nodeInstallers(installation)),
      })
    }
    t.match(run('helm', 'lint', '--strict', chart, ...forKubernetes), '0 chart(s) failed')
    for (const wrong of ['admission=webhook', 'imagee=x', 'apiServerCidrs={10.0.0.1}'])
      t.throws(
        () => run('helm', 'template', 'nodehub', chart, ...forKubernetes, '--set', wrong),
        wrong,
      )
  },
)

void t.test(
  'the kustomize base builds to the objects of nodehub manifests',
  { skip: skipWithout('kubectl') },
  async (t) => {
    const built = run('kubectl', 'kustomize', join(folder, 'kustomize'))
    t.strictSame(objects(parsed(built)), objects(clusterManifests(usual)))
    const nodes = run('kubectl', 'kustomize', join(folder, 'kustomize/nodes'))
    t.strictSame(
      objects(parsed(nodes)),
      objects(nodeInstallers({ namespace: 'kube-system', image: usual.image })),
    )
  },
)
