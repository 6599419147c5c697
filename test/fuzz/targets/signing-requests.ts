import {
  MalformedRequest,
  readSigningRequest,
} from '../../../src/certificates/read-signing-request.ts'
import { newKey, signingRequest } from '../../../src/certificates/signing-request.ts'
import { mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { Finding, type Opening, type Outcome } from '../target.ts'

const subjects = ['edge-1', 'edge-2'].map((name) => ({
  commonName: `system:node:${name}`,
  organizations: ['system:nodes'],
  dnsNames: ['kubernetes', name],
  ipAddresses: ['169.254.2.1', 'fd00::2:1'],
}))

const begin = '-----BEGIN CERTIFICATE REQUEST-----\n'
const end = '\n-----END CERTIFICATE REQUEST-----\n'

const bytesOf = (pem: string): Buffer => Buffer.from(pem.slice(begin.length, -end.length), 'base64')

/** Requests of hubs with some bytes changed: what is taken still says what it said before. */
export const signingRequestTarget: Opening = {
  name: 'signing-request',
  warmRounds: 40,
  async open() {
    const formed: Buffer[] = []
    for (const subject of subjects) formed.push(bytesOf(await signingRequest(newKey(), subject)))
    const known = new Set(subjects.map((subject) => JSON.stringify(subject)))
    const round = async (random: Random): Promise<Outcome> => {
      const inPem = random.once(4)
      const der = random.of(formed)
      const text = (bytes: Buffer): string => `${begin}${bytes.toString('base64')}${end}`
      const input = inPem
        ? mutated(random, Buffer.from(text(der)), [Buffer.from(text(random.of(formed)))])
        : mutated(random, der, formed)
      try {
        const subject = await readSigningRequest(inPem ? input.toString('latin1') : text(input))
        if (!known.has(JSON.stringify(subject)))
          throw new Finding('an unsigned request is accepted', input)
        return 'taken'
      } catch (cause) {
        if (cause instanceof MalformedRequest) return 'refused'
        throw cause
      }
    }
    return { name: 'signing-request', round, [Symbol.asyncDispose]: () => Promise.resolve() }
  },
}
