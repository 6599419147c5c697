/** Where API servers find the webhooks. */
export interface WebhookTarget {
  /** A service in the cluster, or the URL of a server anywhere: `https://host:port`. */
  readonly at:
    | { readonly namespace: string; readonly name: string; readonly port: number }
    | { readonly url: string }
  /**
   * PEM of the authorities behind the serving certificate; absent until `nodehub cluster` writes
   * it.
   */
  readonly caBundle?: string
}

/** `clientConfig` of a webhook at `path`. */
export const clientConfig = ({ at, caBundle }: WebhookTarget, path: string) => ({
  ...('url' in at ? { url: `${at.url}${path}` } : { service: { ...at, path } }),
  ...(caBundle !== undefined && { caBundle: Buffer.from(caBundle).toString('base64') }),
})
