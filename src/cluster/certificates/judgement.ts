import { isIPv6 } from 'node:net'
import { canonical } from '../../base/listening-sockets.ts'
import { MalformedRequest, readSigningRequest } from '../../certificates/read-signing-request.ts'
import type { HubCertificateRules } from '../../config/cluster-config.ts'
import type { NodeFacts } from '../controller/node-facts.ts'

/** The members of a CertificateSigningRequest that decide on it. */
export interface CertificateRequestFacts {
  /** The user that made it, as the API server has authenticated it. */
  readonly username: string
  readonly groups: readonly string[]
  readonly usages: readonly string[]
  /** PEM. */
  readonly request: string
}

export interface Judgement {
  readonly verdict: 'approved' | 'denied'
  readonly why: string
}

const nodesGroup = 'system:nodes'
const nodeUser = 'system:node:'

const requiredUsages = ['digital signature', 'server auth']
const possibleUsages = [...requiredUsages, 'key encipherment']

/**
 * Whether a node's request for the serving certificate of its hub is to be approved. The node asks
 * for itself, with its own identity, for names and addresses of every hub, the ClusterIPs of
 * default/kubernetes among them, and for its own addresses in the networks that are given for them.
 * Elsewhere it could claim an API server's: a node writes its addresses itself. For the same reason
 * one that another node has, too, is no node's own. The node's name is not accepted: the holder of
 * a bootstrap token chooses that. `undefined`: it has not registered yet. Rejects where
 * `serviceAddresses` does.
 */
export async function judge(
  facts: CertificateRequestFacts,
  rules: HubCertificateRules,
  nodes: ReadonlyMap<string, NodeFacts>,
  serviceAddresses: () => Promise<readonly string[]>,
): Promise<Judgement | undefined> {
  const { username, groups, usages } = facts
  const deny = (why: string): Judgement => ({ verdict: 'denied', why })
  if (!username.startsWith(nodeUser) || !groups.includes(nodesGroup))
    return deny('who made it is no node')
  const wrongUsages =
    requiredUsages.some((usage) => !usages.includes(usage)) ||
    usages.some((usage) => !possibleUsages.includes(usage))
  if (wrongUsages) return deny(`its usages are not ${requiredUsages.join(' and ')}`)
  const subject = await readSigningRequest(facts.request).catch((cause: unknown) => {
    if (cause instanceof MalformedRequest) return cause
    throw cause
  })
  if (subject instanceof Error) return deny(`the request ${subject.message}`)
  const { commonName, organizations, dnsNames = [], ipAddresses = [] } = subject
  if (commonName !== username) return deny('it is not for the node that made it')
  const wanted = new Set([nodesGroup, ...rules.organizations])
  const foreign = organizations.find((each) => !wanted.has(each))
  if (foreign !== undefined)
    return deny(`the organization ${JSON.stringify(foreign)} is not allowed`)
  if (!organizations.includes(nodesGroup))
    return deny(`it is not of the organization ${nodesGroup}`)
  const name = username.slice(nodeUser.length)
  const node = nodes.get(name)
  if (node === undefined) return undefined
  const strange = dnsNames.find((each) => !rules.names.includes(each))
  if (strange !== undefined) return deny(`the name ${JSON.stringify(strange)} is not allowed`)
  for (const address of ipAddresses.map(canonical)) {
    if (rules.addresses.includes(address)) continue
    if ((await serviceAddresses()).map(canonical).includes(address)) continue
    if (!node.addresses.includes(address)) return deny(`${address} is no address of the node`)
    if (!rules.nodeNetworks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'))
      return deny(`${address} is in no network of --hub-cert-node-cidrs`)
    const other = [...nodes.values()].find(
      (each) => each.name !== name && each.addresses.includes(address),
    )
    if (other) return deny(`${address} is an address of the node ${other.name}, too`)
  }
  if (dnsNames.length + ipAddresses.length === 0) return deny('it is for no name and no address')
  return { verdict: 'approved', why: 'a node asks for the serving certificate of its hub' }
}
