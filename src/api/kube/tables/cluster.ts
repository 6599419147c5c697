import type { Json, JsonObject } from '../json.ts'
import { listAt, textAt, valueAt } from '../json-at.ts'
import { ageOf, humanDuration } from './age.ts'
import { conditionOf, count, labels } from './cells.ts'
import {
  ageColumn,
  boolean,
  column,
  integer,
  nameColumn,
  none,
  number,
  plainColumns,
  text,
  textOr,
  unset,
  wide,
  type Column,
} from './column.ts'

// Rights, certificates, admission, priorities and devices.

const roleRef = (binding: JsonObject): Json =>
  `${textAt(binding, 'roleRef', 'kind')}/${textAt(binding, 'roleRef', 'name')}`

const subjects =
  (kind: string) =>
  (binding: JsonObject): Json =>
    listAt(binding, 'subjects')
      .filter((each) => textAt(each, 'kind') === kind)
      .map((each) =>
        kind === 'ServiceAccount'
          ? `${textAt(each, 'namespace')}/${textAt(each, 'name')}`
          : textAt(each, 'name'),
      )
      .join(', ')

const bindingColumns: readonly Column[] = [
  nameColumn,
  column('Role', roleRef),
  ageColumn,
  wide('Users', subjects('User')),
  wide('Groups', subjects('Group')),
  wide('ServiceAccounts', subjects('ServiceAccount')),
]

function requestStatus(request: JsonObject): Json {
  const has = (type: string): boolean => conditionOf(request, type) !== undefined
  const verdict = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending'
  const issued = textAt(request, 'status', 'certificate') === '' ? '' : ',Issued'
  return `${verdict}${has('Failed') ? ',Failed' : ''}${issued}`
}

function requestedDuration(request: JsonObject): Json {
  const seconds = valueAt(request, 'spec', 'expirationSeconds')
  return typeof seconds === 'number' ? humanDuration(seconds * 1000) : none
}

/** The last of these conditions that a request for a pod's certificate has. */
const podCertificateState = (request: JsonObject): Json =>
  listAt(request, 'status', 'conditions')
    .map((each) => textAt(each, 'type'))
    .findLast((type) => ['Issued', 'Denied', 'Failed'].includes(type)) ?? 'Pending'

const webhookColumns = [nameColumn, integer('Webhooks', count('webhooks')), ageColumn]

function paramKind(policy: JsonObject): Json {
  const kind = valueAt(policy, 'spec', 'paramKind')
  return kind ? `${textAt(kind, 'apiVersion')}/${textAt(kind, 'kind')}` : unset
}

function paramRef(binding: JsonObject): Json {
  const name = textAt(binding, 'spec', 'paramRef', 'name')
  return name === '' ? unset : `${textAt(binding, 'spec', 'paramRef', 'namespace') || '*'}/${name}`
}

const policyBindingColumns = [
  nameColumn,
  column('PolicyName', text('spec', 'policyName')),
  column('ParamRef', paramRef),
  ageColumn,
]

const limited =
  (...path: string[]) =>
  (level: JsonObject): Json =>
    valueAt(level, 'spec', 'limited', ...path) ?? none

const queuing = (member: string) => limited('limitResponse', 'queuing', member)

function claimState(claim: JsonObject): Json {
  const isDeleted = textAt(claim, 'metadata', 'deletionTimestamp') !== ''
  const states = isDeleted ? ['deleted'] : []
  if (valueAt(claim, 'status', 'allocation')) {
    states.push('allocated')
    if (listAt(claim, 'status', 'reservedFor').length > 0) states.push('reserved')
  } else if (!isDeleted) states.push('pending')
  return states.join(',')
}

function taintAdded(rule: JsonObject): Json {
  const added = valueAt(rule, 'spec', 'taint', 'timeAdded')
  return added ? ageOf(added) : ''
}

function serviceOf(api: JsonObject): Json {
  const service = valueAt(api, 'spec', 'service')
  return service ? `${textAt(service, 'namespace')}/${textAt(service, 'name')}` : 'Local'
}

function availability(api: JsonObject): Json {
  const condition = conditionOf(api, 'Available')
  if (condition === undefined) return 'Unknown'
  const status = textAt(condition, 'status')
  return status === 'True' ? status : `${status} (${textAt(condition, 'reason')})`
}

export const clusterColumns: Readonly<Record<string, readonly Column[]>> = {
  limitranges: plainColumns,
  'roles.rbac.authorization.k8s.io': plainColumns,
  'clusterroles.rbac.authorization.k8s.io': plainColumns,
  'customresourcedefinitions.apiextensions.k8s.io': plainColumns,
  'rolebindings.rbac.authorization.k8s.io': bindingColumns,
  'clusterrolebindings.rbac.authorization.k8s.io': bindingColumns,
  'apiservices.apiregistration.k8s.io': [
    nameColumn,
    column('Service', serviceOf),
    column('Available', availability),
    ageColumn,
  ],
  'certificatesigningrequests.certificates.k8s.io': [
    nameColumn,
    ageColumn,
    column('SignerName', textOr(none, 'spec', 'signerName')),
    column('Requestor', text('spec', 'username')),
    column('RequestedDuration', requestedDuration),
    column('Condition', requestStatus),
  ],
  'clustertrustbundles.certificates.k8s.io': [
    nameColumn,
    column('SignerName', textOr(none, 'spec', 'signerName')),
  ],
  'podcertificaterequests.certificates.k8s.io': [
    nameColumn,
    column('PodName', text('spec', 'podName')),
    column('ServiceAccountName', text('spec', 'serviceAccountName')),
    column('NodeName', text('spec', 'nodeName')),
    column('SignerName', text('spec', 'signerName')),
    column('State', podCertificateState),
    column('UnverifiedUserAnnotations', labels('spec', 'unverifiedUserAnnotations')),
  ],
  'leases.coordination.k8s.io': [
    nameColumn,
    column('Holder', text('spec', 'holderIdentity')),
    ageColumn,
  ],
  'leasecandidates.coordination.k8s.io': [
    nameColumn,
    column('LeaseName', text('spec', 'leaseName')),
    column('BinaryVersion', text('spec', 'binaryVersion')),
    column('EmulationVersion', text('spec', 'emulationVersion')),
    ageColumn,
  ],
  'priorityclasses.scheduling.k8s.io': [
    nameColumn,
    integer('Value', number('value')),
    boolean('Global-Default', (object) => valueAt(object, 'globalDefault') ?? false),
    ageColumn,
    column('PreemptionPolicy', text('preemptionPolicy')),
  ],
  'runtimeclasses.node.k8s.io': [nameColumn, column('Handler', text('handler')), ageColumn],
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': webhookColumns,
  'validatingwebhookconfigurations.admissionregistration.k8s.io': webhookColumns,
  'validatingadmissionpolicies.admissionregistration.k8s.io': [
    nameColumn,
    integer('Validations', count('spec', 'validations')),
    column('ParamKind', paramKind),
    ageColumn,
  ],
  'mutatingadmissionpolicies.admissionregistration.k8s.io': [
    nameColumn,
    integer('Mutations', count('spec', 'mutations')),
    column('ParamKind', paramKind),
    ageColumn,
  ],
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': policyBindingColumns,
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': policyBindingColumns,
  'flowschemas.flowcontrol.apiserver.k8s.io': [
    nameColumn,
    column('PriorityLevel', text('spec', 'priorityLevelConfiguration', 'name')),
    column('MatchingPrecedence', number('spec', 'matchingPrecedence')),
    column('DistinguisherMethod', textOr(none, 'spec', 'distinguisherMethod', 'type')),
    ageColumn,
    column('MissingPL', (schema) => textAt(conditionOf(schema, 'Dangling'), 'status') || '?'),
  ],
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': [
    nameColumn,
    column('Type', text('spec', 'type')),
    column('NominalConcurrencyShares', limited('nominalConcurrencyShares')),
    column('Queues', queuing('queues')),
    column('HandSize', queuing('handSize')),
    column('QueueLengthLimit', queuing('queueLengthLimit')),
    ageColumn,
  ],
  'resourceclaims.resource.k8s.io': [nameColumn, column('State', claimState), ageColumn],
  'resourceslices.resource.k8s.io': [
    nameColumn,
    column('Node', text('spec', 'nodeName')),
    column('Driver', text('spec', 'driver')),
    column('Pool', text('spec', 'pool', 'name')),
    ageColumn,
  ],
  'devicetaintrules.resource.k8s.io': [
    nameColumn,
    column('Key', text('spec', 'taint', 'key')),
    column('Value', text('spec', 'taint', 'value')),
    column('Effect', text('spec', 'taint', 'effect')),
    column('TimeAdded', taintAdded),
    ageColumn,
  ],
}
