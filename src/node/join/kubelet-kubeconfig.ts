/**
 * The settings of the kubeconfig by which a kubelet reaches its hub. Files are paths on the node.
 */
export interface KubeletKubeconfigOptions {
  readonly port: number
  /**
   * The certificate of the hub's own CA, or of the CA that signed the hub's configured certificate.
   */
  readonly certificateAuthority: string
  readonly clientCertificate: string
  readonly clientKey: string
}

/**
 * A kubeconfig that leads a kubelet to the hub of its node, with the certificate the kubelet has.
 * It names files, as those are renewed: nothing in it is secret.
 */
export function kubeletKubeconfig(options: KubeletKubeconfigOptions): object {
  const { port, certificateAuthority, clientCertificate, clientKey } = options
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'nodehub',
    clusters: [
      {
        name: 'nodehub',
        cluster: {
          server: `https://127.0.0.1:${port}`,
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
