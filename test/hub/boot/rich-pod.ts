import { readObject } from '../../../src/api/codec/object.ts'
import type { GVK } from '../../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { toProtobuf } from '../../../src/sandbox/protobuf.ts'

/** An object as an API server of this form would have answered a get of it. */
export function encoded(encoding: Encoding, gvk: GVK, object: JsonObject) {
  const { group, version, kind } = gvk
  const apiVersion = group === '' ? version : `${group}/${version}`
  const body =
    encoding === 'json'
      ? Buffer.from(JSON.stringify({ kind, apiVersion, ...object }))
      : toProtobuf(gvk, object)
  return { encoding, ...readObject(encoding, 'object', body) }
}

export const podKind: GVK = { group: '', version: 'v1', kind: 'Pod' }

/** Every way in which a pod refers to something that its kubelet asks for. */
export const richPod: JsonObject = {
  metadata: { name: 'press', namespace: 'plant', uid: 'uid-press', resourceVersion: '7' },
  spec: {
    nodeName: 'edge-1',
    serviceAccountName: 'operator',
    runtimeClassName: 'gvisor',
    imagePullSecrets: [{ name: 'registry' }],
    resourceClaims: [
      { name: 'camera', resourceClaimName: 'camera-of-the-hall' },
      { name: 'lamp', resourceClaimTemplateName: 'lamps' },
      { name: 'not-made-yet', resourceClaimTemplateName: 'lamps' },
    ],
    initContainers: [
      {
        name: 'first',
        image: 'init:1',
        envFrom: [
          { secretRef: { name: 'init-secret' } },
          { configMapRef: { name: 'init-config' } },
        ],
      },
    ],
    containers: [
      {
        name: 'main',
        image: 'main:1',
        envFrom: [{ configMapRef: { name: 'perhaps', optional: true } }],
        env: [
          { name: 'PLAIN', value: 'x' },
          { name: 'A', valueFrom: { secretKeyRef: { name: 'env-secret', key: 'a' } } },
          { name: 'B', valueFrom: { configMapKeyRef: { name: 'env-config', key: 'b' } } },
          // Once required is required, in whatever order.
          { name: 'C', valueFrom: { secretKeyRef: { name: 'twice', key: 'a', optional: true } } },
          { name: 'D', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        ],
      },
      { name: 'plain', image: 'plain:1' },
    ],
    ephemeralContainers: [
      {
        name: 'debug',
        image: 'debug:1',
        env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'debug-secret', key: 'e' } } }],
      },
    ],
    volumes: [
      { name: 'scratch', emptyDir: {} },
      { name: 'tls', secret: { secretName: 'tls' } },
      { name: 'twice', secret: { secretName: 'twice' } },
      { name: 'spare', secret: { secretName: 'spare', optional: true } },
      { name: 'config', configMap: { name: 'config' } },
      {
        name: 'kube-api-access',
        projected: {
          sources: [
            { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
            { configMap: { name: 'kube-root-ca.crt' } },
            { downwardAPI: { items: [{ path: 'n', fieldRef: { fieldPath: 'metadata.name' } }] } },
            { serviceAccountToken: { path: 'vault', audience: 'vault', expirationSeconds: 600 } },
            { secret: { name: 'projected', optional: true } },
            { clusterTrustBundle: { name: 'plant-ca', path: 'ca.crt' } },
            { clusterTrustBundle: { signerName: 'example.com/signer', path: 'others.crt' } },
            { podCertificate: { signerName: 'example.com/signer', keyType: 'ED25519' } },
          ],
        },
      },
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
      {
        name: 'cache',
        ephemeral: {
          volumeClaimTemplate: {
            spec: {
              accessModes: ['ReadWriteOnce'],
              resources: { requests: { storage: '1Gi' } },
            },
          },
        },
      },
      {
        name: 'inline',
        csi: { driver: 'inline.csi.example', nodePublishSecretRef: { name: 'csi' } },
      },
      {
        name: 'ceph',
        cephfs: { monitors: ['10.0.0.9:6789'], secretRef: { name: 'ceph' } },
      },
    ],
  },
  status: {
    phase: 'Running',
    resourceClaimStatuses: [{ name: 'lamp', resourceClaimName: 'press-lamp-x2v' }],
    extendedResourceClaimStatus: { resourceClaimName: 'press-extended-resources-7' },
  },
}
