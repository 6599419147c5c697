/**
 * The settings of the kubeconfig of a kubelet: to its hub, or to an API server. Files are paths on
 * the node.
 */
export interface KubeletKubeconfigOptions {
  readonly server: string
  /**
   * The certificate of the hub's own CA, or of the CA that signed the hub's configured certificate.
   */
  readonly certificateAuthority: string
  readonly clientCertificate: string
  readonly clientKey: string
}

/**
 * A kubeconfig that leads a kubelet to this server, with the certificate the kubelet has. It names
 * files, as those are renewed: nothing in it is secret.
 */
export function kubeletKubeconfig(options: KubeletKubeconfigOptions): object {
  const { server, certificateAuthority, clientCertificate, clientKey } = options
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'nodehub',
    clusters: [
      {
        name: 'nodehub',
        cluster: {
          server,
          'certificate-authority': certificateAuthority,
        },
      },
    ],
    users: [
      {
        name: 'kubelet',
        user: { 'client-certificate': clientCertificate, 'client-key': clientKey },
      },
    ],
    contexts: [{ name: 'nodehub', context: { cluster: 'nodehub', user: 'kubelet' } }],
  }
}
