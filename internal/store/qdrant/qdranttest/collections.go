package qdranttest

import (
	"context"
	"maps"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Create implements pb.CollectionsServer.
func (s *Server) Create(_ context.Context, r *pb.CreateCollection) (*pb.CollectionOperationResponse, error) {
	c, err := newCollection(r)
	if err != nil {
		return nil, err
	}
	c.server = s
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.collections[r.CollectionName]; ok {
		return nil, status.Errorf(codes.AlreadyExists, "Wrong input: Collection `%s` already exists!", r.CollectionName)
	}
	if _, ok := s.aliases[r.CollectionName]; ok {
		return nil, invalid("Wrong input: Can't create collection with name %s. Alias with the same name already exists", r.CollectionName)
	}
	s.collections[r.CollectionName] = c
	return &pb.CollectionOperationResponse{Result: true}, nil
}

// Delete implements pb.CollectionsServer. It takes the real name, not an alias, and the
// aliases go with the collection.
func (s collectionsService) Delete(_ context.Context, r *pb.DeleteCollection) (*pb.CollectionOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.collections[r.CollectionName]
	delete(s.collections, r.CollectionName)
	maps.DeleteFunc(s.aliases, func(_, target string) bool { return target == r.CollectionName })
	return &pb.CollectionOperationResponse{Result: ok}, nil
}

// UpdateAliases implements pb.CollectionsServer: all actions, which create aliases, or
// none. An alias that exists is moved.
func (s *Server) UpdateAliases(_ context.Context, r *pb.ChangeAliases) (*pb.CollectionOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.aliases)
	for _, action := range r.Actions {
		a := action.GetCreateAlias()
		if a == nil {
			return nil, invalid("the fake does not support action %v", action)
		}
		if _, ok := s.collections[a.AliasName]; ok {
			return nil, status.Errorf(codes.AlreadyExists, "Wrong input: Collection `%s` already exists!", a.AliasName)
		}
		if _, ok := s.collections[a.CollectionName]; !ok {
			return nil, missing(a.CollectionName)
		}
		next[a.AliasName] = a.CollectionName
	}
	s.aliases = next
	return &pb.CollectionOperationResponse{Result: true}, nil
}

// ListAliases implements pb.CollectionsServer.
func (s *Server) ListAliases(context.Context, *pb.ListAliasesRequest) (*pb.ListAliasesResponse, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := &pb.ListAliasesResponse{}
	for _, name := range slices.Sorted(maps.Keys(s.aliases)) {
		out.Aliases = append(out.Aliases, &pb.AliasDescription{AliasName: name, CollectionName: s.aliases[name]})
	}
	return out, nil
}

// Get implements pb.CollectionsServer, with what cairn asks of a collection.
func (s collectionsService) Get(_ context.Context, r *pb.GetCollectionInfoRequest) (*pb.GetCollectionInfoResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	return &pb.GetCollectionInfoResponse{Result: &pb.CollectionInfo{
		Status: pb.CollectionStatus_Green, OptimizerStatus: &pb.OptimizerStatus{Ok: true}, SegmentsCount: 1,
		Config: &pb.CollectionConfig{Metadata: c.created.Metadata, Params: &pb.CollectionParams{VectorsConfig: c.created.VectorsConfig}},
	}}, nil
}
