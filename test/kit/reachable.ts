import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import type { Teardown } from './wire/wire.ts'

/** A cluster's authority, and files of a hub's serving certificate. */
class ServingFiles {
  readonly authority: CertificateAuthority
  readonly certificate: string
  readonly key: string
  readonly ca: string

  constructor(t: Teardown, authority: CertificateAuthority) {
    this.authority = authority
    const folder = mkdtempSync(join(tmpdir(), 'nodehub-serving-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    this.certificate = join(folder, 'serving.crt')
    this.key = join(folder, 'serving.key')
    this.ca = join(folder, 'ca.crt')
    writeFileSync(this.ca, this.authority.certificate)
  }

  /** A new certificate in the place of the last. */
  async issue(
    names: { ipAddresses?: readonly string[]; dnsNames?: readonly string[] },
    authority = this.authority,
  ): Promise<void> {
    const issued = await authority.issue({ commonName: 'hub', usage: 'server', ...names })
    writeFileSync(this.certificate, issued.certificate)
    writeFileSync(this.key, issued.key)
  }
}

/**
 * Where a hub of the tests can be reached by pods that share its loopback: at the port of its TLS
 * proxy.
 */
export const reachableHost = '127.0.0.1'

/** The ClusterIP of default/kubernetes, where a cluster of the tests has that Service. */
const serviceAddress = '10.96.0.1'

/** What makes a hub reachable there, over API servers without TLS. */
export async function reachable(t: Teardown) {
  const files = new ServingFiles(t, await CertificateAuthority.create('cluster-ca'))
  await files.issue({ ipAddresses: [reachableHost, serviceAddress] })
  return {
    files,
    flags: [
      `--upstream-ca=${files.ca}`,
      `--serving-cert=${files.certificate}`,
      `--serving-key=${files.key}`,
    ],
    config: {
      pods: {
        dummy: undefined,
        hubAddress: { host: reachableHost, port: 0 },
        hostNetworkNode: true,
      },
    },
  }
}
