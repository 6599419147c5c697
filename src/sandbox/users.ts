/** Whom a request comes from. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

export const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

/** Someone who has proved a name is a member of one more group. */
export const authenticated = (user: User): User => ({
  ...user,
  groups: user.groups.includes('system:authenticated')
    ? user.groups
    : [...user.groups, 'system:authenticated'],
})
