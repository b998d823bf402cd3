package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Login is what an authorization server has granted: a token, and what refreshes it.
type Login struct {
	Config *oauth2.Config
	Token  *oauth2.Token
}

// OAuth authorizes the requests to a URL with the login of its user. It is an
// auth.OAuthHandler, and safe for concurrent use.
type OAuth struct {
	// Load returns the login, nil if there is none, and Save replaces it.
	Load func() (*Login, error)
	Save func(*Login) error
	// Show shows the user the page of the authorization server. If it is nil, a request
	// without a valid login fails.
	Show func(url string)

	mu     sync.Mutex
	login  *Login             // of source
	source oauth2.TokenSource // nil before the first token
}

var errLogin = errors.New("the server requires a login: repeat `cairn tools add NAME URL --oauth`")

// TokenSource implements auth.OAuthHandler. It follows the logins of other processes.
func (o *OAuth) TokenSource(context.Context) (oauth2.TokenSource, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	login, err := o.Load()
	if err != nil || login == nil {
		return nil, err
	}
	if o.source == nil || login.Token.AccessToken != o.login.Token.AccessToken {
		o.login = login
		o.source = login.Config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, oauthClient()), login.Token)
	}
	return o, nil
}

// Token implements oauth2.TokenSource. It saves a token that has been refreshed.
func (o *OAuth) Token() (*oauth2.Token, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	token, err := o.source.Token()
	if err == nil && token.AccessToken != o.login.Token.AccessToken {
		o.login = &Login{o.login.Config, token}
		err = o.Save(o.login)
	}
	return token, err
}

// Authorize implements auth.OAuthHandler: the user logs in on a page that sends a code to a port
// of this machine.
func (o *OAuth) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if o.Show == nil {
		resp.Body.Close()
		return errLogin
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		resp.Body.Close()
		return err
	}
	codes := make(chan *auth.AuthorizationResult, 1)
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/callback" || q.Get("state") == "" {
			http.NotFound(w, r)
			return
		}
		select {
		case codes <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}:
		default: // the page was loaded again
		}
		fmt.Fprintln(w, "You can close this page and return to cairn.")
	})}
	go func() { _ = s.Serve(l) }() // ends with Close
	defer s.Close()
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "cairn", RedirectURIs: []string{"http://" + l.Addr().String() + "/callback"},
			GrantTypes: []string{"authorization_code", "refresh_token"}, TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			o.Show(args.URL)
			select {
			case r := <-codes:
				if r.Code == "" {
					return nil, errors.New("the authorization server gave no code")
				}
				return r, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: oauthClient(),
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return oauth2.StaticTokenSource(t), o.Save(&Login{c, t})
		},
	})
	if err != nil {
		return err // unreachable: the configuration is complete
	}
	return h.Authorize(ctx, req, resp)
}

// oauthClient bounds the answers of authorization servers.
func oauthClient() *http.Client { return &http.Client{Transport: authorized{}, Timeout: Timeout} }
