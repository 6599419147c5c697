/** The user of a request. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

export const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

/** Every authenticated user is in one more group. */
export const authenticated = (user: User): User => ({
  ...user,
  groups: user.groups.includes('system:authenticated')
    ? user.groups
    : [...user.groups, 'system:authenticated'],
})
