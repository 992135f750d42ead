// A real OpenID provider for the tests: `node provider.mjs PORT GATEWAY`. Fresh keys at every start.
//
// `robot` gets tokens by client credentials; `console` is the public client of the page at GATEWAY/docs. Anybody may log in.
import Provider from 'oidc-provider';
import { generateKeyPairSync, randomUUID } from 'node:crypto';

const [, , port, gateway] = process.argv;
const issuer = `http://127.0.0.1:${port}`;
const key = (type, options, alg) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: randomUUID(),
});
const scope = 'labels:read operations:read trigger:model-refresh';

const provider = new Provider(issuer, {
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, 'RS256'), key('ec', { namedCurve: 'P-256' }, 'ES256')] },
  cookies: { keys: [randomUUID()] },
  scopes: ['openid', ...scope.split(' ')],
  clients: [
    {
      client_id: 'robot', client_secret: 'robot-secret', token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
    },
    {
      client_id: 'console', token_endpoint_auth_method: 'none', application_type: 'native',
      grant_types: ['authorization_code'], response_types: ['code'], redirect_uris: [`${gateway}/docs/oauth2-redirect.html`],
    },
  ],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:reshelf',
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope,
        audience: resource === 'urn:reshelf' ? 'reshelf' : 'other',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: resource.endsWith(':es256') ? 'ES256' : 'RS256' } },
      }),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: () => ({ tenants: ['acme'] }),
  pkce: { required: () => true },
  clientBasedCORS: () => true,
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
