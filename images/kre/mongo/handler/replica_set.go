// A replica set of one, for a server that has none: what `stage` adds to FerretDB's own package of commands.
//
// It is the part of mongo's behaviour that moorage decides on. Until it is initiated a server tells that it is no
// primary; it is initiated once, as a host that must lead to this very machine; and it knows that after a restart.

package handler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/FerretDB/wire"

	"github.com/FerretDB/FerretDB/internal/handler/common"
	"github.com/FerretDB/FerretDB/internal/handler/handlererrors"
	"github.com/FerretDB/FerretDB/internal/types"
	"github.com/FerretDB/FerretDB/internal/util/must"
)

// Mongo's own codes.
const (
	alreadyInitialized = handlererrors.ErrorCode(23)
	noReplicationYet   = handlererrors.ErrorCode(76)
	invalidConfig      = handlererrors.ErrorCode(93)
	notYetInitialized  = handlererrors.ErrorCode(94)
)

// stateFile has the host of the set's one member, once there is one.
var stateFile = filepath.Join(os.Getenv("FERRETDB_STATE_DIR"), "replica-set")

var initiating sync.Mutex

// member is the host as which the set was initiated; empty where it was not.
func member() string {
	content, err := os.ReadFile(stateFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	return string(content)
}

// helloOfMember is `hello` of a server that was started with a replica set's name, or of one that was not.
func (h *Handler) helloOfMember(ctx context.Context, doc *types.Document) (*types.Document, error) {
	host := member()
	if h.ReplSetName == "" || host == "" {
		told, err := h.hello(ctx, doc, h.TCPHost, "")
		if err != nil || h.ReplSetName == "" {
			return told, err
		}
		told.Set("isreplicaset", true)
		told.Set("secondary", false)
		for _, name := range []string{"isWritablePrimary", "ismaster"} {
			if told.Has(name) {
				told.Set(name, false)
			}
		}
		return told, nil
	}
	told, err := h.hello(ctx, doc, host, h.ReplSetName)
	if err != nil {
		return nil, err
	}
	told.Set("secondary", false)
	told.Set("primary", host)
	told.Set("me", host)
	return told, nil
}

// MsgReplSetInitiate is the command `replSetInitiate`.
func (h *Handler) MsgReplSetInitiate(_ context.Context, msg *wire.OpMsg) (*wire.OpMsg, error) {
	doc, err := opMsgDocument(msg)
	if err != nil {
		return nil, err
	}
	wanted, err := common.GetRequiredParam[*types.Document](doc, doc.Command())
	if err != nil {
		return nil, err
	}
	if h.ReplSetName == "" {
		return nil, handlererrors.NewCommandErrorMsg(noReplicationYet, "This node was not started with the replSet option")
	}
	host, err := h.only(wanted)
	if err != nil {
		return nil, handlererrors.NewCommandErrorMsg(invalidConfig, err.Error())
	}
	initiating.Lock()
	defer initiating.Unlock()
	if member() != "" {
		return nil, handlererrors.NewCommandErrorMsg(alreadyInitialized, "already initialized")
	}
	if err := keep(host); err != nil {
		return nil, err
	}
	return documentOpMsg(must.NotFail(types.NewDocument("ok", float64(1))))
}

// MsgReplSetGetStatus is the command `replSetGetStatus`.
func (h *Handler) MsgReplSetGetStatus(context.Context, *wire.OpMsg) (*wire.OpMsg, error) {
	host := member()
	if host == "" {
		return nil, handlererrors.NewCommandErrorMsg(notYetInitialized, "no replset config has been received")
	}
	self := must.NotFail(types.NewDocument(
		"_id", int32(0), "name", host, "health", float64(1), "state", int32(1), "stateStr", "PRIMARY", "self", true,
	))
	return documentOpMsg(must.NotFail(types.NewDocument(
		"set", h.ReplSetName, "myState", int32(1), "members", must.NotFail(types.NewArray(self)), "ok", float64(1),
	)))
}

// only is the host of the one member of a configuration; the error says why it can't be this server.
func (h *Handler) only(config *types.Document) (string, error) {
	name, _ := config.Get("_id")
	if name != h.ReplSetName {
		return "", fmt.Errorf("the configuration is of set %v, and this node was started for %s", name, h.ReplSetName)
	}
	members, _ := config.Get("members")
	list, ok := members.(*types.Array)
	if !ok || list.Len() != 1 {
		return "", errors.New("members must be a list of one: more are not supported here")
	}
	one, ok := must.NotFail(list.Get(0)).(*types.Document)
	if !ok {
		return "", errors.New("a member must be a document")
	}
	found, _ := one.Get("host")
	host, ok := found.(string)
	if !ok || !isHere(host) {
		return "", fmt.Errorf("No host described in new configuration maps to this node: %v", found)
	}
	return host, nil
}

// isHere tells whether HOST:PORT leads to this machine, by its names and addresses.
func isHere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	found, err := net.LookupHost(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, each := range own {
		for _, ip := range found {
			if ip == strings.SplitN(each.String(), "/", 2)[0] {
				return true
			}
		}
	}
	return false
}

// keep writes the host down for good, or not at all.
func keep(host string) error {
	fresh, err := os.Create(stateFile + ".new")
	if err != nil {
		return err
	}
	defer fresh.Close()
	if _, err := fresh.WriteString(host); err != nil {
		return err
	}
	if err := fresh.Sync(); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), stateFile)
}
