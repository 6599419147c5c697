import {
  type HubProcess,
  type HubProcessOptions,
  startHubProcess,
} from '../kit/cluster/hub-process.ts'
import { type ControlPlane, nodeSubject } from '../kit/control-plane.ts'
import { type Kubelet, type KubeletOptions, startKubelet } from '../kit/kubelet.ts'

export const nodeName = 'edge-1'

/** The hub of the node. */
export const startNodeHub = (
  plane: ControlPlane,
  options: Partial<HubProcessOptions> = {},
): Promise<HubProcess> =>
  startHubProcess(plane.workspace, {
    servers: [plane.url],
    kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
    nodeName,
    ...options,
  })

/**
 * The kubelet of the node. Through its hub, if there is one, as `manifests --part kubeconfig` has
 * it: over TLS, with the kubelet's own certificate.
 */
export const startNodeKubelet = (
  t: Parameters<typeof startKubelet>[0],
  plane: ControlPlane,
  hub?: HubProcess,
  options: Partial<KubeletOptions> = {},
): Promise<Kubelet> =>
  startKubelet(t, {
    nodeName,
    kubeconfig: plane.kubeconfig(nodeSubject(nodeName), hub?.secureUrl, hub?.authority),
    clientCa: plane.pki.ca.certificate,
    ...options,
  })
