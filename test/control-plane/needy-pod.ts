import { mkdirSync } from 'node:fs'
import { type ControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'
import { busyboxPodWith } from './pod.ts'

const namespace = '/api/v1/namespaces/default'

/**
 * What `needyPod` refers to: a config map, a secret, a bound volume, a runtime class, and the
 * service account with what is published for it.
 */
export async function makeDependencies({ admin, workspace }: ControlPlane): Promise<void> {
  const folder = workspace.file('volume')
  mkdirSync(folder, { recursive: true })
  const made = await Promise.all([
    admin.post(`${namespace}/configmaps`, { metadata: { name: 'words' }, data: { word: 'word' } }),
    admin.post(`${namespace}/secrets`, { metadata: { name: 'keys' }, stringData: { key: 'key' } }),
    admin.post('/apis/node.k8s.io/v1/runtimeclasses', {
      metadata: { name: 'plain' },
      handler: 'runc',
    }),
    admin.post('/api/v1/persistentvolumes', {
      metadata: { name: 'disk' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: folder },
        storageClassName: '',
      },
    }),
    admin.post(`${namespace}/persistentvolumeclaims`, {
      metadata: { name: 'claim' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: '',
        volumeName: 'disk',
      },
    }),
  ])
  for (const { status, body } of made) if (status !== 201) throw new Error(body.toString())
  await until('the claim to be bound', async () => {
    const { status } = (await admin.get(`${namespace}/persistentvolumeclaims/claim`)).json()
    return status?.phase === 'Bound'
  })
  await until('the authority to be published', async () => {
    const { status } = await admin.get(`${namespace}/configmaps/kube-root-ca.crt`)
    return status === 200
  })
}

/**
 * Starts only with all that it refers to, its service account's token among it, and then says its
 * name over HTTP at port 8080.
 */
export const needyPod = (name: string): object =>
  busyboxPodWith(
    name,
    {
      runtimeClassName: 'plain',
      volumes: [
        { name: 'words', configMap: { name: 'words' } },
        { name: 'keys', secret: { secretName: 'keys' } },
        { name: 'disk', persistentVolumeClaim: { claimName: 'claim' } },
      ],
    },
    {
      command: [
        '/bin/sh',
        '-ec',
        `[ -s /var/run/secrets/kubernetes.io/serviceaccount/token ]
[ "$KEY" = key ]; [ "$(cat /words/word)" = word ]; [ "$(cat /keys/key)" = key ]
echo ${name} >/disk/${name}; echo ${name} >/tmp/name
exec httpd -f -p 8080 -h /tmp`,
      ],
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'key' } } }],
      volumeMounts: [
        { name: 'words', mountPath: '/words' },
        { name: 'keys', mountPath: '/keys' },
        { name: 'disk', mountPath: '/disk' },
      ],
    },
  )
