import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import type { Workspace } from './workspace.ts'

export interface CertificateFiles {
  readonly certificate: string
  readonly key: string
}

export interface Subject {
  readonly commonName: string
  readonly organizations?: readonly string[]
}

/** One authority for everything in a control plane, in files, made with openssl. */
export class Pki {
  readonly ca: CertificateFiles
  readonly serviceAccountKey: { readonly private: string; readonly public: string }
  readonly #openssl: string
  readonly #workspace: Workspace

  constructor(openssl: string, workspace: Workspace) {
    this.#openssl = openssl
    this.#workspace = workspace
    this.ca = this.#files('ca')
    this.#key(this.ca.key)
    this.#run('req', '-x509', '-new', '-key', this.ca.key, '-subj', '/CN=test-ca', '-days', '2').to(
      this.ca.certificate,
    )
    const file = workspace.file('service-account')
    this.serviceAccountKey = { private: `${file}.key`, public: `${file}.pub` }
    // The API server signs ECDSA tokens too, and a P-256 key takes no time to make.
    this.#key(this.serviceAccountKey.private)
    this.#run('pkey', '-in', this.serviceAccountKey.private, '-pubout').to(
      this.serviceAccountKey.public,
    )
  }

  /** A client certificate for whom the API server is to take its holder for; made once a name. */
  client(name: string, subject: Subject): CertificateFiles {
    return this.#issue(name, subject, ['extendedKeyUsage=clientAuth'])
  }

  /**
   * A serving certificate for these names, written as openssl does: `IP:127.0.0.1`,
   * `DNS:localhost`.
   */
  server(name: string, subject: Subject, names: readonly string[]): CertificateFiles {
    return this.#issue(name, subject, [
      'extendedKeyUsage=serverAuth',
      `subjectAltName=${names.join(',')}`,
    ])
  }

  #issue(name: string, subject: Subject, extensions: readonly string[]): CertificateFiles {
    const files = this.#files(name)
    if (existsSync(files.certificate)) return files
    const request = this.#workspace.file(`${name}.csr`)
    const extensionFile = this.#workspace.file(`${name}.ext`)
    const parts = [
      ...(subject.organizations ?? []).map((o) => `O=${o}`),
      `CN=${subject.commonName}`,
    ]
    this.#key(files.key)
    this.#run('req', '-new', '-key', files.key, '-subj', `/${parts.join('/')}`).to(request)
    writeFileSync(
      extensionFile,
      ['keyUsage=digitalSignature,keyEncipherment', ...extensions].join('\n'),
    )
    // prettier-ignore
    this.#run(
      'x509', '-req', '-in', request, '-CA', this.ca.certificate, '-CAkey', this.ca.key, '-CAcreateserial',
      '-days', '2', '-extfile', extensionFile,
    ).to(files.certificate)
    return files
  }

  #files(name: string): CertificateFiles {
    return {
      certificate: this.#workspace.file(`${name}.crt`),
      key: this.#workspace.file(`${name}.key`),
    }
  }

  #key(path: string): void {
    this.#run('ecparam', '-genkey', '-name', 'prime256v1', '-noout').to(path)
  }

  #run(...args: string[]): { to: (path: string) => void } {
    return {
      to: (path) =>
        void execFileSync(this.#openssl, [...args, '-out', path], {
          stdio: ['ignore', 'ignore', 'pipe'],
        }),
    }
  }
}
