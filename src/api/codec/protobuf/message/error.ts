/** Bytes or values that no message of the schema can be made of. */
export class ProtobufError extends Error {
  readonly code: 'ERR_PROTOBUF'
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProtobufError'
    this.code = 'ERR_PROTOBUF'
  }
}
