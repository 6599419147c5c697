import { busyboxImage } from '../kit/cluster/oci-image.ts'

export interface PodOptions {
  readonly command?: readonly string[]
  readonly nodeName?: string
  /** Where in its containers a folder is that outlives each of them. */
  readonly kept?: string
}

/** A pod of busybox that goes wherever it is put and ends at once when told to. */
export const busyboxPod = (name: string, { command, nodeName, kept }: PodOptions = {}): object =>
  busyboxPodWith(
    name,
    {
      ...(nodeName !== undefined && { nodeName }),
      automountServiceAccountToken: false,
      ...(kept !== undefined && { volumes: [{ name: 'kept', emptyDir: {} }] }),
    },
    {
      ...(command && { command }),
      ...(kept !== undefined && { volumeMounts: [{ name: 'kept', mountPath: kept }] }),
    },
  )

/** The same with more in its spec and in its container. */
export const busyboxPodWith = (name: string, spec: object, container: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: {
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'main', image: busyboxImage, imagePullPolicy: 'Never', ...container }],
    ...spec,
  },
})
