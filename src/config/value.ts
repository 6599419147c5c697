import { isIP, isIPv4 } from 'node:net'
import type { GVR } from '../api/kube/gvk.ts'
import { didYouMean } from './suggestion.ts'

/** A parsed value, or what is wrong, worded to follow the text: `"abc" is not a port`. */
export type Parsed<T> = { readonly value: T } | { readonly wrong: string }

/** A parser for the text of a setting. `Absent`: what a setting is that is not given. */
export interface ValueType<T, Absent = undefined> {
  readonly absent?: Absent
  /** The value in help texts: `PORT`, `true|false`. */
  readonly placeholder: string
  /** The value of a flag alone; absent if a value must follow. */
  readonly bare?: string
  /**
   * A repeated flag extends the list, as with Kubernetes' own list flags, with this between its
   * items; absent: the last one counts.
   */
  readonly adds?: string
  /** The bounds of a whole number. */
  readonly range?: readonly [least: number, most: number]
  /** The words, if it takes no others. */
  readonly words?: readonly string[]
  parse(text: string): Parsed<T>
}

/** A text without the passwords of URLs in it. */
export const withoutPassword = (text: string): string =>
  text.replace(/\/\/[^/@,\s]*@/g, '//[redacted]@')

/** The same in quotes, for messages. */
export const redactedText = (text: string): string => JSON.stringify(withoutPassword(text))

const wrong = (wrong: string): { readonly wrong: string } => ({ wrong })

/** Any text that is fit; `why`: what is wrong with others. */
const fit = (
  placeholder: string,
  isFit: (text: string) => boolean,
  why: string,
): ValueType<string> => ({
  placeholder,
  parse: (text) => (isFit(text) ? { value: text } : wrong(why)),
})

/** Any text of this form. */
export const matching = (placeholder: string, form: RegExp, why: string): ValueType<string> =>
  fit(placeholder, (text) => form.test(text), why)

/** Any text but an empty one. */
export const text = (placeholder: string): ValueType<string> =>
  matching(placeholder, /[^]/, 'must not be empty')

const truths = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

/** As Go's strconv.ParseBool; a flag alone is true. */
export const boolean: ValueType<boolean, boolean> = {
  absent: false,
  placeholder: 'true|false',
  bare: 'true',
  parse(text) {
    const value = truths.get(text)
    return value === undefined ? wrong('is neither true nor false') : { value }
  },
}

/** A whole number from `low` to `high`. */
export const count = (low: number, high: number, placeholder = 'N'): ValueType<number> => ({
  placeholder,
  range: [low, high],
  parse(text) {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
    return value >= low && value <= high
      ? { value }
      : wrong(`is not a whole number from ${low} to ${high}`)
  },
})

/** A TCP port; 0 lets the system choose one. */
export const port: ValueType<number> = {
  placeholder: 'PORT',
  range: [0, 65535],
  parse(text) {
    const parsed = count(0, 65535).parse(text)
    return 'value' in parsed ? parsed : wrong('is not a port (0 to 65535)')
  },
}

/** An IPv4 or IPv6 address. */
export const address = fit('IP', (text) => isIP(text) > 0, 'is not an IP address')

/** A block of IPv4 or IPv6 addresses. */
export const cidr = fit(
  'CIDR',
  (text) => {
    const [, address = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? []
    return isIP(address) > 0 && Number(bits) <= (isIPv4(address) ? 32 : 128)
  },
  'is not a block of addresses like 10.0.0.0/24',
)

/**
 * One of the words; `aliases` maps other forms to them. `former` ones are accepted and not shown: a
 * warning of the option names what they are.
 */
export function oneOf<const T extends string>(
  words: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
  former: readonly T[] = [],
): ValueType<T> {
  return {
    placeholder: words.join('|'),
    words: [...words, ...Object.keys(aliases)],
    parse(text) {
      const value = [...words, ...former].find((word) => word === text) ?? aliases[text]
      return value === undefined
        ? wrong(`is none of ${words.join(', ')}${didYouMean(text, words)}`)
        : { value }
    },
  }
}

/**
 * Items separated by commas; surrounding blanks are ignored, and an empty text is an empty list.
 */
export const listOf = <T>(item: ValueType<T>): ValueType<readonly T[], readonly T[]> => ({
  absent: [],
  placeholder: `${item.placeholder},...`,
  adds: ',',
  parse(text) {
    const values: T[] = []
    const mistakes: string[] = []
    const parts = text.split(',').filter((part) => part.trim() !== '')
    for (const part of parts) {
      const parsed = item.parse(part.trim())
      if ('value' in parsed) values.push(parsed.value)
      else if (parts.length === 1) return parsed
      else mistakes.push(`${redactedText(part.trim())}, which ${parsed.wrong}`)
    }
    return mistakes.length > 0 ? wrong(`has ${mistakes.join(', and ')}`) : { value: values }
  },
})

/** A list that must not be empty. */
export const atLeastOne = <T>(
  list: ValueType<readonly T[], readonly T[]>,
): ValueType<readonly T[], readonly T[]> => ({
  ...list,
  parse(text) {
    const parsed = list.parse(text)
    return 'value' in parsed && parsed.value.length === 0 ? wrong('names nothing') : parsed
  },
})

/** The same type; where it is not given, the value is `undefined`. */
export const optional = <T>(type: ValueType<T, unknown>): ValueType<T> => ({
  ...type,
  absent: undefined,
})

/**
 * An optional value that may be empty: templates of yurthub's charts write flags with empty values.
 */
export const orEmpty = <T>(type: ValueType<T>): ValueType<T | undefined> => ({
  ...type,
  parse: (text) => (text === '' ? { value: undefined } : type.parse(text)),
})

const unitMs = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
])

/** A duration in Go's notation (`40s`, `1m30s`, `500ms`), in milliseconds; at most a week. */
export const duration: ValueType<number> = {
  placeholder: 'DURATION',
  parse(text) {
    const parts = [...text.matchAll(/(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h)/gy)]
    const length = parts.reduce((sum, [part]) => sum + part.length, 0)
    const value = parts.reduce(
      (sum, [, amount, unit]) => sum + Number(amount) * (unitMs.get(unit ?? '') ?? NaN),
      0,
    )
    if (text === '0') return { value: 0 }
    return length === text.length && length > 0 && value <= 7 * 24 * 3_600_000
      ? { value }
      : wrong('is not a duration like 40s or 1m30s')
  },
}

const unitBytes = new Map([
  ['', 1],
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
  ['Ki', 2 ** 10],
  ['Mi', 2 ** 20],
  ['Gi', 2 ** 30],
])

/** A size in Kubernetes' notation (`512Mi`, `1G`, plain bytes), in bytes, from `low` on. */
export const size = (low: string): ValueType<number> => ({
  placeholder: 'SIZE',
  parse(text) {
    const value = bytesIn(text)
    if (value === undefined) return wrong('is not a size like 512Mi, 1G or 500000000')
    return value >= (bytesIn(low) ?? 0) ? { value } : wrong(`is less than ${low}`)
  },
})

function bytesIn(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,12})([kMG]|[KMG]i)?$/.exec(text) ?? []
  const bytes = Number(amount) * (unitBytes.get(unit) ?? NaN)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** Whole seconds, in milliseconds. */
export const seconds: ValueType<number> = {
  placeholder: 'SECONDS',
  range: [1, 86_400],
  parse(text) {
    const parsed = count(1, 86_400).parse(text)
    return 'value' in parsed ? { value: parsed.value * 1000 } : parsed
  },
}

/** A Kubernetes object's name (RFC 1123 subdomain). */
export const objectName = matching(
  'NAME',
  /^(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/,
  'is not a name Kubernetes takes (lower-case letters, digits, - and .)',
)

/**
 * The address of an API server: scheme, host and port. Without a scheme it is https, as in yurthub.
 */
export const serverAddress: ValueType<URL> = {
  placeholder: 'https://HOST:PORT',
  parse(text) {
    const full = text.includes('://') ? text : `https://${text}`
    if (!URL.canParse(full)) return wrong('is not an address like https://host:6443')
    const parsed = httpAddress.parse(full)
    return 'value' in parsed && parsed.value.pathname !== '/'
      ? wrong('must end after host and port')
      : parsed
  },
}

/** An http:// or https:// address, perhaps with a path. */
export const httpAddress: ValueType<URL> = {
  placeholder: 'http://HOST:PORT',
  parse(text) {
    const url = URL.parse(text)
    if (url === null || !/^https?:$/.test(url.protocol))
      return wrong('is neither an https:// nor an http:// address')
    if (url.username !== '' || url.password !== '') return wrong('must not carry a password')
    if (url.search !== '' || url.hash !== '') return wrong('must end after the path')
    return { value: url }
  },
}

/** `host` or `host:port`; an IPv6 address with a port needs brackets. */
export const hostAndPort: ValueType<{ readonly host: string; readonly port?: number }> = {
  placeholder: 'HOST[:PORT]',
  parse(text) {
    if (isIP(text) > 0) return { value: { host: text } }
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+))(?::(\d{1,5}))?$/.exec(text)
    const host = match?.[1] ?? match?.[2]
    const port = match?.[3] === undefined ? undefined : Number(match[3])
    if (host === undefined || (port ?? 1) > 65535)
      return wrong('is not a host with or without a port')
    return { value: { host, ...(port !== undefined && { port }) } }
  },
}

/** `group/version/resource`; the core group is omitted, empty, or `core`. */
export const resource: ValueType<GVR> = {
  placeholder: 'GROUP/VERSION/RESOURCE',
  parse(text) {
    const parts = text.split('/')
    const [group, version, name] = parts.length === 2 ? ['', ...parts] : parts
    if (parts.length > 3 || !version || !name) return wrong('is not group/version/resource')
    return { value: { group: group === 'core' ? '' : (group ?? ''), version, resource: name } }
  },
}

/** The name of a signer of certificates (certificates.k8s.io): a domain, and a path in it. */
export const signerName = matching(
  'SIGNER',
  /^[a-z0-9.-]{1,253}\/[A-Za-z0-9./:-]{1,253}$/,
  'is not the name of a signer, such as kubernetes.io/kubelet-serving',
)

/** An organization in a node's certificate, which is a group of its user. */
export const organization = matching(
  'ORGANIZATION',
  /^(?!system:)|^system:nodes$/,
  'is a group of Kubernetes itself, which no hub is to be in',
)

/** A DNS name. */
export const dnsName = matching(
  'NAME',
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
  'is not a DNS name',
)

/** The name of a network interface, as the kernel takes it, and no flag of a command. */
export const interfaceName = matching(
  'NAME',
  /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/,
  'is not the name of an interface: up to 15 letters, digits, dots, dashes',
)

/**
 * The address of a dummy interface: IPv6, or link-local IPv4 except 169.254.31.0/24 and
 * 169.254.1.1, which node agents of clouds and Calico use (yurthub's rule).
 */
export const dummyAddress: ValueType<string> = {
  placeholder: 'IP',
  parse(text) {
    if (isIP(text) === 0) return wrong('is not an IP address')
    if (!isIPv4(text)) return { value: text }
    if (!text.startsWith('169.254.')) return wrong('is not in 169.254.0.0/16')
    return text.startsWith('169.254.31.') || text === '169.254.1.1'
      ? wrong('is reserved: choose outside 169.254.31.0/24 and 169.254.1.1')
      : { value: text }
  },
}
